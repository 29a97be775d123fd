// Bits of PostgreSQL's own types: bit and bit varying, and for functions, and where a condition
// counts all bits of a difference, integers and bytea. Rows are words of 64 bits; to functions and
// to operators the number of dimensions of a value is that of its bits.
#include "core/hamming.h"
#include "pg/types/bit_tests.h"
#include "pg/types/value_reading.h"
#include "pg/types/value_types.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

constexpr std::uint32_t kBitsPerByte = 8;

/// Adds so many bits, in whole bytes of which the last one is filled up with zeros.
ValueFinding add_bits(PointBuffer* buffer, ValueShape* shape, std::int64_t id, const char* bytes,
                      std::uint64_t bits) {
  const auto dims = static_cast<std::uint32_t>(std::min<std::uint64_t>(bits, PG_UINT32_MAX));
  const ValueFinding found = fit(buffer, shape, dims, kMaxDimensions * kBitsPerWord, 1);
  if (found.problem != ValueProblem::kNone) return found;
  buffer->dims = (dims + kBitsPerWord - 1) / kBitsPerWord;
  char* const target = add_point(buffer, id);
  std::memset(target, 0, buffer->dims * sizeof(std::uint64_t));
  std::memcpy(target, bytes, (dims + kBitsPerByte - 1) / kBitsPerByte);
  return found;
}

/// The number of bits, then these; the value may have a short header and lie anywhere.
ValueFinding add_bit_string(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const char* const data = VARDATA_ANY(detoasted);
    return add_bits(buffer, shape, id, data + sizeof(std::int32_t),
                    static_cast<std::uint64_t>(load<std::int32_t>(data)));
  });
}

ValueFinding add_bytea(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    return add_bits(buffer, shape, id, VARDATA_ANY(detoasted),
                    std::uint64_t{kBitsPerByte} * VARSIZE_ANY_EXHDR(detoasted));
  });
}

ValueFinding add_int8(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  const std::int64_t integer = DatumGetInt64(value);
  return add_bits(buffer, shape, id, reinterpret_cast<const char*>(&integer),
                  kBitsPerByte * sizeof integer);
}

ValueFinding add_int4(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  const std::int32_t integer = DatumGetInt32(value);
  return add_bits(buffer, shape, id, reinterpret_cast<const char*>(&integer),
                  kBitsPerByte * sizeof integer);
}

/// `bit_count(a # b)`, of integers `bit_count((a # b)::bit(64))`: what the planner takes for a
/// function of a and b. pgvector's functions raise errors where lengths differ, as # does.
constexpr TestFunction kTests[] = {
    {nullptr, "bit_count", F_BIT_COUNT_BIT, TestForm::kDistance, ValueForm::kPoint,
     Metric::kHamming, nullptr},
    {"vector", "hamming_distance", InvalidOid, TestForm::kDistance, ValueForm::kPoint,
     Metric::kHamming, nullptr},
    {"vector", "jaccard_distance", InvalidOid, TestForm::kDistance, ValueForm::kPoint,
     Metric::kJaccard, nullptr},
    {nullptr, "", InvalidOid, TestForm::kDistance, ValueForm::kPoint, Metric::kJaccard, nullptr}};
constexpr int kIntegerTests = 1;  // the first
constexpr int kCommonShareTest = 3;

constexpr ValueType bits_of(const char* name, Oid type, AddValue add, std::uint32_t fixed_words,
                            std::uint32_t head_bytes, int tests) {
  return {.extension = nullptr,
          .name = name,
          .type = type,
          .scalar = ScalarType::kBits,
          .add = {.point = add},
          .fixed_numbers = fixed_words,
          .head_bytes = head_bytes,
          .coordinate_bytes = sizeof(std::uint64_t),
          .tests = kTests,
          .test_count = tests};
}

}  // namespace

const ValueType kBitType =
    bits_of("bit", BITOID, add_bit_string, 0, sizeof(std::int32_t), lengthof(kTests));
const ValueType kVarbitType =
    bits_of("bit varying", VARBITOID, add_bit_string, 0, sizeof(std::int32_t), 0);
const ValueType kByteaType = bits_of("bytea", BYTEAOID, add_bytea, 0, 0, 0);
const ValueType kInt8BitsType = bits_of("bigint", INT8OID, add_int8, 1, 0, kIntegerTests);
const ValueType kInt4BitsType = bits_of("integer", INT4OID, add_int4, 1, 0, kIntegerTests);

SimilarityTest common_share_test() { return {&kBitType, &kTests[kCommonShareTest], false, true}; }

}  // namespace gpujoin
