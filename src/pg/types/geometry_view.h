// How values of PostGIS's types geometry and geography lie in memory. PostGIS promises this layout
// to files on disk, so it does not change; it stands here in our own words.
#pragma once

#include "pg/types/value_reading.h"

namespace gpujoin {

/// The SRID in three bytes, a byte of flags, maybe a word of more flags and a bounding box of
/// single-precision numbers, rounded outwards; then the type and the number of its coordinates'
/// tuples or of its parts.
struct GeometryView {
  std::int32_t srid;
  std::uint32_t dims;  ///< of a tuple; distances compare the first two
  const char* box;     ///< null: none
  const char* body;
};

enum GeometryKind : std::uint32_t {
  kPointKind = 1,
  kLineKind = 2,
  kAreaKind = 3,
  kFirstMultiKind = 4,
  kLastStraightKind = 6,
  kLastMultiKind = 7,
};

inline GeometryView view_geometry(const char* data) {
  constexpr std::uint8_t kHasZ = 0x01, kHasM = 0x02, kHasBox = 0x04, kGeodetic = 0x08,
                         kExtended = 0x10, kSecondVersion = 0x40;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(data);
  const std::uint8_t flags = bytes[3];
  GeometryView view = {};
  view.srid = (bytes[0] & 0x1f) << 16 | bytes[1] << 8 | bytes[2];
  view.dims = 2 + ((flags & kHasZ) != 0) + ((flags & kHasM) != 0);
  view.body = data + 4;
  if ((flags & kSecondVersion) != 0 && (flags & kExtended) != 0) view.body += 8;
  if ((flags & kHasBox) != 0) {
    view.box = view.body;
    view.body += 2 * ((flags & kGeodetic) != 0 ? 3 : view.dims) * sizeof(float);
  }
  return view;
}

/// The box that a value is stored with, scaled.
inline void load_box(const char* box, std::uint32_t dims, double scale, double* low, double* high) {
  for (std::uint32_t d = 0; d < dims; ++d) {
    low[d] = scale * load<float>(box + 2 * d * sizeof(float));
    high[d] = scale * load<float>(box + (2 * d + 1) * sizeof(float));
  }
}

}  // namespace gpujoin
