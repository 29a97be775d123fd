// The devices that tests and measurements run joins on, by environment variables.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>

#include "engine/request/request.h"

namespace gpujoin {

/// GPUJOIN_DEVICES is a list of numbers, of which joins share all; or "all", of which they share
/// what they are worth. Without it, and where the request names another one than the first, it
/// stays as it is. A device named twice has two shares.
inline JoinRequest on_chosen_devices(JoinRequest request) {
  const char* const list = std::getenv("GPUJOIN_DEVICES");
  DeviceNumbers& devices = request.resources.devices;
  if (list == nullptr || devices.count != 1 || devices.number[0] != 0) return request;
  devices.count = 0;
  if (std::string(list) == "all") return request;
  request.knobs.share_devices = Switch::kOn;
  std::istringstream numbers(list);
  for (std::string number; std::getline(numbers, number, ',');)
    devices.number[devices.count++] = std::stoi(number);
  return request;
}

}  // namespace gpujoin
