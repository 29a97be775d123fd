// Reads affinity and control groups (versions 1 and 2). Nothing here raises an error: what cannot
// be read sets no bound.
#include "pg/machine.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "pg/compat.h"

namespace gpujoin {
namespace {

constexpr const char* kCgroupRoot = "/sys/fs/cgroup";

/// Reads a small text file into text[0 .. size), null-terminated; false when there is none.
bool read_text(const char* path, char* text, size_t size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t length = read(file, text, size - 1);
  close(file);
  text[length > 0 ? length : 0] = '\0';
  return length > 0;
}

/// Finds the group of this process in one hierarchy: version 2 when `controller` is null, else that
/// controller's of version 1. `group` gets its path below the hierarchy's root, "" for the root.
bool own_group(const char* controller, char* group, size_t size) {
  char text[4096];
  if (!read_text("/proc/self/cgroup", text, sizeof text)) return false;
  char* rest = text;
  for (char* line = strsep(&rest, "\n"); line != nullptr; line = strsep(&rest, "\n")) {
    strsep(&line, ":");  // the hierarchy's number
    char* names = strsep(&line, ":");
    if (line == nullptr) continue;
    bool found = controller == nullptr && *names == '\0';
    for (char* name = strsep(&names, ","); controller != nullptr && name != nullptr;
         name = strsep(&names, ","))
      found = found || strcmp(name, controller) == 0;
    if (!found) continue;
    strlcpy(group, strcmp(line, "/") == 0 ? "" : line, size);
    return true;
  }
  return false;
}

/// Calls bound(directory) for the group of this process and every group around it, and returns the
/// least.
template <class Bound>
double least_bound(const char* controller, Bound bound) {
  char group[1024];
  double least = INFINITY;
  if (!own_group(controller, group, sizeof group)) return least;
  for (;;) {
    char directory[2048];
    snprintf(directory, sizeof directory, "%s%s%s%s", kCgroupRoot, controller != nullptr ? "/" : "",
             controller != nullptr ? controller : "", group);
    least = fmin(least, bound(directory));
    char* last = strrchr(group, '/');
    if (last == nullptr) return least;
    *last = '\0';
  }
}

/// The number in a file of `directory`; infinite when there is none, or "max".
double number_in(const char* directory, const char* file) {
  char path[MAXPGPATH], text[64], *end;
  snprintf(path, sizeof path, "%s/%s", directory, file);
  if (!read_text(path, text, sizeof text)) return INFINITY;
  const double number = strtod(text, &end);
  return end == text ? INFINITY : number;
}

/// cpu.max: "<quota or max> <period>", in microseconds.
double processors_v2(const char* directory) {
  char path[MAXPGPATH], text[64];
  double quota, period;
  snprintf(path, sizeof path, "%s/cpu.max", directory);
  if (!read_text(path, text, sizeof text)) return INFINITY;
  return sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : INFINITY;
}

double processors_v1(const char* directory) {
  const double quota = number_in(directory, "cpu.cfs_quota_us");
  const double period = number_in(directory, "cpu.cfs_period_us");
  return quota > 0 && period > 0 && period < INFINITY ? quota / period : INFINITY;
}

double memory_v2(const char* directory) { return number_in(directory, "memory.max"); }

double memory_v1(const char* directory) { return number_in(directory, "memory.limit_in_bytes"); }

int find_threads() {
  cpu_set_t allowed;
  double threads = sched_getaffinity(0, sizeof allowed, &allowed) == 0
                       ? CPU_COUNT(&allowed)
                       : static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  threads = fmin(threads, ceil(least_bound(nullptr, processors_v2)));
  threads = fmin(threads, ceil(least_bound("cpu", processors_v1)));
  return threads >= 1 ? static_cast<int>(threads) : 1;
}

std::uint64_t find_memory() {
  double bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  bytes = fmin(bytes, least_bound(nullptr, memory_v2));
  bytes = fmin(bytes, least_bound("memory", memory_v1));
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

int machine_threads() {
  static const int threads = find_threads();
  return threads;
}

std::uint64_t machine_memory_bytes() {
  static const std::uint64_t bytes = find_memory();
  return bytes;
}

}  // namespace gpujoin
