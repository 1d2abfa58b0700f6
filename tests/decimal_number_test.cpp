#include "pipeline/decimal_number.h"

#include <gtest/gtest.h>

namespace patternd {
namespace {

constexpr double kUntouched = 77;

template <class T>
NumberFault fault_of(const char* text) {
  auto value = static_cast<T>(kUntouched);
  const NumberFault fault = read_decimal(text, value);
  if (fault != NumberFault::kNone) {
    EXPECT_EQ(value, static_cast<T>(kUntouched)) << text;
  }
  return fault;
}

TEST(DecimalNumber, ReadsWhatPeopleWrite) {
  double real = 0;
  for (const auto& [text, value] : {std::pair{"2.5", 2.5},
                                    {"-0.25", -0.25},
                                    {"+3", 3.0},
                                    {"1e-3", 0.001},
                                    {".5", 0.5},
                                    {"0", 0.0},
                                    {"-0.0", 0.0}}) {
    EXPECT_EQ(read_decimal(text, real), NumberFault::kNone) << text;
    EXPECT_EQ(real, value) << text;
  }
  std::int64_t whole = 0;
  for (const auto& [text, value] : {std::pair{"10", std::int64_t{10}},
                                    {"-7", -7},
                                    {"+3", 3},
                                    {"0", 0},
                                    {"9223372036854775807", std::int64_t{9223372036854775807}}}) {
    EXPECT_EQ(read_decimal(text, whole), NumberFault::kNone) << text;
    EXPECT_EQ(whole, value) << text;
  }
}

TEST(DecimalNumber, TakesNothingElse) {
  for (const char* text : {"", "+", "-", "+-1", "-+1", "--1", "0x10", "010", "-010", "00", " 1",
                           "1 ", "1,5", "nan", "inf", "ten", "1_000", "10k", "."}) {
    EXPECT_EQ(fault_of<double>(text), NumberFault::kNotANumber) << text;
    EXPECT_EQ(fault_of<std::int64_t>(text), NumberFault::kNotANumber) << text;
  }
  for (const char* text : {"1e", "e1", "1.2.3", "0x1p3", "00.5"})
    EXPECT_EQ(fault_of<double>(text), NumberFault::kNotANumber) << text;
  for (const char* text : {"1.0", "1e3", ".5"})
    EXPECT_EQ(fault_of<std::int64_t>(text), NumberFault::kNotANumber) << text;
}

TEST(DecimalNumber, SaysWhatIsTooLarge) {
  EXPECT_EQ(fault_of<double>("1e400"), NumberFault::kTooLarge);
  EXPECT_EQ(fault_of<std::int64_t>("9223372036854775808"), NumberFault::kTooLarge);
}

}  // namespace
}  // namespace patternd
