//===- Numerics.h - conversions between float formats ----------*- C++ -*-===//
//
// Bit-exact conversions between f64, f32, f16 and bf16: round to nearest, ties
// to even, with subnormals, infinities and NaN. Every narrowing rounds once,
// also f64 to a half type. All of it is integer arithmetic, so the result
// depends neither on the machine's rounding mode nor on whether it flushes
// subnormals.
//
// A NaN stays one: its sign and the upper bits of its payload are kept, and the
// quiet bit is set when it is narrowed, as hardware does.
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_NUMERICS_H
#define RUNTIME_NUMERICS_H

#include <cstdint>

namespace mpopt {

// Widenings are exact; f16 and bf16 values are passed as their encodings.
float f16ToF32(uint16_t bits);
float bf16ToF32(uint16_t bits);
double f16ToF64(uint16_t bits);
double bf16ToF64(uint16_t bits);
double f32ToF64(float value);

// Narrowings round once.
float f64ToF32(double value);
uint16_t f64ToF16(double value);
uint16_t f64ToBF16(double value);
uint16_t f32ToF16(float value);
uint16_t f32ToBF16(float value);

// Between the half types: neither holds the other's values.
uint16_t f16ToBF16(uint16_t bits);
uint16_t bf16ToF16(uint16_t bits);

/// The nearest f32, f16 or bf16 value, as a double.
double roundToF32(double value);
double roundToF16(double value);
double roundToBF16(double value);

/// The encoding of `value`, and the value of an encoding.
uint32_t bitsOf(float value);
uint64_t bitsOf(double value);
float floatOf(uint32_t bits);
double doubleOf(uint64_t bits);

} // namespace mpopt

#endif // RUNTIME_NUMERICS_H
