// How far two shapes of the plane are apart at least and at most, from a few walks along their
// corners: shapes of points, straight lines and areas between these, which lie within the hull of
// their corners. Of convex shapes that are apart the bounds are the distance, but for rounding. For
// the host.
#pragma once

#include <cmath>
#include <cstdint>

namespace gpujoin {

struct Corner {
  double x, y;

  bool operator==(const Corner&) const = default;
};

struct DistanceBounds {
  double least, greatest;  ///< but for rounding
  bool touch;              ///< a corner of one is a corner of the other
};

// A Shape has walk(take), which gives each of its lines, a ring or a point, to take(line): a Line
// has `count`, 1 or more, corners at(i). A ring ends at the corner where it begins.

/// A corner, and those that lines lead to from there, as far as there is room for them.
struct LinkedCorner {
  static constexpr int kMostLinks = 4;

  Corner at;
  Corner links[kMostLinks];
  int link_count;

  void add_links(const auto& line, std::uint64_t i) {
    if (i > 0 && link_count < kMostLinks) links[link_count++] = line.at(i - 1);
    if (i + 1 < line.count && link_count < kMostLinks) links[link_count++] = line.at(i + 1);
  }
};

/// The corner nearest to a place.
template <class Shape>
LinkedCorner nearest_corner(const Shape& shape, const Corner& place) {
  LinkedCorner nearest = {};
  double least = INFINITY;
  shape.walk([&](const auto& line) {
    for (std::uint64_t i = 0; i < line.count; ++i) {
      const Corner corner = line.at(i);
      const double x = corner.x - place.x, y = corner.y - place.y, square = x * x + y * y;
      if (square > least) continue;
      if (square < least)
        nearest = {corner, {}, 0};
      else if (corner != nearest.at)
        continue;
      least = square;
      nearest.add_links(line, i);
    }
  });
  return nearest;
}

/// The place of a segment that is nearest to another place.
inline Corner nearest_place(const Corner& from, const Corner& to, const Corner& place) {
  const double x = to.x - from.x, y = to.y - from.y, square = x * x + y * y;
  const double t = square > 0 ? ((place.x - from.x) * x + (place.y - from.y) * y) / square : 0;
  return t <= 0 ? from : t >= 1 ? to : Corner{from.x + t * x, from.y + t * y};
}

/// A place of the one shape and one of the other.
struct Places {
  Corner one, other;

  double distance() const { return std::hypot(other.x - one.x, other.y - one.y); }
};

/// How far a corner lies along the way from one place to the other, in units of their distance.
inline double progress(const Places& way, double length, const Corner& corner) {
  return ((corner.x - way.one.x) * ((way.other.x - way.one.x) / length) +
          (corner.y - way.one.y) * ((way.other.y - way.one.y) / length));
}

/// `hint` is a place near `other`, or in its midst.
template <class Shape>
DistanceBounds bound_distance(const Shape& one, const Shape& other, const Corner& hint) {
  const LinkedCorner there = nearest_corner(other, nearest_corner(one, hint).at);
  const LinkedCorner here = nearest_corner(one, there.at);
  Places way = {here.at, there.at};
  double greatest = way.distance();
  if (!(greatest > 0)) return {0, 0, true};
  const auto shorten = [&](const Places& places) {
    const double length = places.distance();
    if (!(length < greatest)) return;
    greatest = length;
    way = places;
  };
  for (int i = 0; i < there.link_count; ++i)
    shorten({here.at, nearest_place(there.at, there.links[i], here.at)});
  for (int i = 0; i < here.link_count; ++i)
    shorten({nearest_place(here.at, here.links[i], there.at), there.at});
  if (!(greatest > 0)) return {0, 0, false};
  double last = -INFINITY, first = INFINITY;  // of the one's corners, of the other's
  one.walk([&](const auto& line) {
    for (std::uint64_t i = 0; i < line.count; ++i)
      last = std::fmax(last, progress(way, greatest, line.at(i)));
  });
  other.walk([&](const auto& line) {
    for (std::uint64_t i = 0; i < line.count; ++i)
      first = std::fmin(first, progress(way, greatest, line.at(i)));
  });
  return {first - last, greatest, false};
}

}  // namespace gpujoin
