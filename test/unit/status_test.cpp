// Status: texts are formatted, cut to their room, and always ended.

#include "engine/request/status.h"

#include <gtest/gtest.h>

#include <string>

namespace gpujoin::test {
namespace {

TEST(Status, a_default_one_is_ok_and_says_nothing) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_STREQ(status.message, "");
  EXPECT_STREQ(status.hint, "");
}

TEST(Status, formats_its_message) {
  const Status status =
      make_status(StatusCode::kMemoryLimit, "raise %d", "%d bytes of %s", 42, "host memory");
  EXPECT_EQ(status.code, StatusCode::kMemoryLimit);
  EXPECT_FALSE(status.ok());
  EXPECT_STREQ(status.message, "42 bytes of host memory");
  EXPECT_STREQ(status.hint, "raise %d") << "a hint is text, not a format";
}

TEST(Status, a_hint_may_be_missing) {
  EXPECT_STREQ(make_status(StatusCode::kInternal, nullptr, "x").hint, "");
}

TEST(Status, longer_texts_are_cut) {
  const std::string longer(1000, 'x');
  const Status status = make_status(StatusCode::kInternal, longer.c_str(), "%s", longer.c_str());
  EXPECT_EQ(status.message, std::string(sizeof status.message - 1, 'x'));
  EXPECT_EQ(status.hint, std::string(sizeof status.hint - 1, 'x'));
}

TEST(Status, only_kOk_is_ok) {
  for (const StatusCode code :
       {StatusCode::kEnd, StatusCode::kInterrupted, StatusCode::kInvalidArgument,
        StatusCode::kMemoryLimit, StatusCode::kOutOfMemory, StatusCode::kUnavailable,
        StatusCode::kDeviceFailure, StatusCode::kInternal})
    EXPECT_FALSE(make_status(code, nullptr, "x").ok());
}

}  // namespace
}  // namespace gpujoin::test
