#include "verify/program_check.h"
#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "runtime/emulate.h"
#include "synth/sites.h"
#include "tile/interpret.h"
#include "tile/program.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {
using tile::Buffers;
using tile::Program;

// Of a tensor: a matmul of 1024³ takes the interpreter seconds.
constexpr int64_t kMostElements = 1 << 20;

using Storage = std::map<std::string, std::vector<std::byte>>;

Buffers views_of(Storage& storage) {
  Buffers views;
  for (auto& [name, bytes] : storage)
    views[name] = bytes;
  return views;
}

// The extents that a tensor's elements are coordinates in: 0 where nothing is gathered by it.
int64_t gathered_by(const Program& program, const std::string& lookup) {
  int64_t extent = 0;
  for (const synth::Site& site : synth::sites_of(program))
    if (const auto* copy = std::get_if<tile::Copy>(&site.statement->node))
      for (const tile::Tile* tile : {&copy->src, &copy->dst})
        if (tile->lookup >= 0 && program.tensor(tile->lookup).name == lookup)
          extent = std::max(extent, program.tensor(tile->tensor).shape[tile->lookup_dim]);
  return extent;
}

// Element i of an input. Coordinates are of distinct places, so that no two elements are scattered
// to one, half of them counted from the end; and some lie outside.
double random_element(Dtype dtype, Random& random, int64_t i, int64_t elements, int64_t extent) {
  if (is_float(dtype)) return random.normal();
  if (extent == 0) return as_double(random.below(16)) - (is_signed(dtype) ? 8 : 0);
  const auto range = std::bit_ceil(as_uint64(std::max(elements, extent)) + 1);
  const auto place = as_double((as_uint64(i) * 0x9e3779b1u + 5) % range);
  const auto size = as_double(extent);
  if (std::fmod(place, 2) == 0) return place;
  return place < size ? place - size : -place - 1;
}
}  // namespace

namespace {
// Relative where the reference is not 0 everywhere, else absolute.
double error_of(const Comparison& seen) {
  const bool finite = seen.nonfinite.count + seen.unwritten.count == 0;
  if (!finite) return HUGE_VAL;
  return seen.reference_squares > 0 ? seen.frobenius() : std::sqrt(seen.error_squares);
}

// What the order of sums may come to. Of products of 8-bit floats tensor cores keep 13 digits of a
// sum, and cut the rest (device/emulated/tensor_core.h).
double rounding_of_sums(const Program& program) {
  const auto is_narrow = [](const tile::Tensor& tensor) {
    return is_float(tensor.dtype) && bits_of(tensor.dtype) == 8;
  };
  if (std::ranges::any_of(program.tensors, is_narrow)) return std::ldexp(4, -13);
  return 64 * unit_roundoff(Dtype::f32);
}
}  // namespace

Result<ProgramVerdict> check_program(const Program& program, const LaunchList& list,
                                     uint64_t seed) {
  Storage meant;
  for (const auto* specs : {&list.inputs, &list.outputs})
    for (const BufferSpec& spec : *specs) {
      if (spec.elements() > kMostElements)
        return fail({ErrorCode::kResourceLimit, "a tensor is too large to be interpreted",
                     spec.name, fmt::format("at most {} elements", kMostElements),
                     fmt::format("{}", spec.elements()), "check the program at a smaller shape"});
      auto& bytes = meant[spec.name];
      bytes.assign(spec.bytes(), std::byte{0xff});  // outputs: poison
      Random random(seed, spec.name);
      const int64_t extent = specs == &list.inputs ? gathered_by(program, spec.name) : 0;
      if (specs == &list.inputs)
        for (int64_t i = 0; i < spec.elements(); ++i)
          store_from_double(spec.dtype, bytes.data(), i,
                            random_element(spec.dtype, random, i, spec.elements(), extent));
    }
  Storage made = meant;
  WARPLOOM_CHECK(tile::interpret(program, views_of(meant)));
  pack_inputs(list, made);
  ProgramVerdict verdict;
  WARPLOOM_TRY(verdict.banks,
               runtime::emulate(list, views_of(made), {.seed = seed, .banks = true}));
  for (const auto& use : verdict.banks) {
    verdict.wavefronts += use.wavefronts;
    verdict.wavefronts_least += use.least;
  }
  verdict.agrees = true;
  for (const BufferSpec& spec : list.outputs) {
    std::vector<double> want(spec.elements());
    load_run(spec.dtype, meant[spec.name].data(), 0, 1, spec.elements(), want.data());
    Comparison seen;  // where neither wrote, or both overflowed alike, they agree
    compare(seen, {}, spec.dtype, made[spec.name].data(), want.data(), nullptr, 0, spec.elements());
    const double error = error_of(seen);
    const double rounding = is_float(spec.dtype) ? 2 * unit_roundoff(spec.dtype) : 0;
    const double bound = rounding + rounding_of_sums(program);
    verdict.error = std::max(verdict.error, error);
    verdict.bound = std::max(verdict.bound, bound);
    verdict.agrees &= error <= bound;
  }
  return verdict;
}
}  // namespace warploom::verify
