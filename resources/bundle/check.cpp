// Feeds {{bundle}} with known inputs and compares what it computes with the FP64 reference. Usage: check FOLDER, the folder of the
// stored tensors. Every output's relative Frobenius error must be at most what kOutputs says. Raw files are little-endian.
#include "../{{bundle}}.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#define WL_PURE inline
#include "convert.h"
namespace {
using Bytes = std::vector<unsigned char>;

// An element as a number, and back where the number is exact in the type.
template <class T>
double number_at(const unsigned char* at) {
  T x;
  std::memcpy(&x, at, sizeof x);
  if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(x);
  else return wl::to_float(x);
}
template <class T>
void put(unsigned char* at, double value) {
  T x;
  if constexpr (std::is_arithmetic_v<T>) x = static_cast<T>(value);
  else x = wl::cast<T>(static_cast<float>(value));
  std::memcpy(at, &x, sizeof x);
}
struct Type {
  int bytes, kept;
  double (*number_at)(const unsigned char*);
  void (*put)(unsigned char*, double);
};
template <class T>
constexpr Type type(int kept) {
  return {static_cast<int>(sizeof(T)), kept, number_at<T>, put<T>};
}
struct Input {
  const char* name;
  const char* file;  // null: made from the seed
  unsigned long long seed;
  double scale;
  bool positive;
  double low, step;          // where the numbers are so many, from `low` on, `step` apart:
  unsigned long long count;  // 0: they are not
  long long elements;
  Type type;
};
struct Output {
  const char* name;
  const char* values;
  const char* indices;  // null: every element
  double allowed;
  long long elements;
  Type type;
};
const Input kInputs[] = {
{{#inputs}}    { {{called}}, {{file}}, {{seed}}ull, {{scale}}, {{positive}}, {{low}}, {{step}}, {{count}}ull, {{elements}}, type<{{element}}>({{kept}})},
{{/inputs}}};
const Output kOutputs[] = {
{{#outputs}}    { {{called}}, {{file}}, {{indices}}, {{allowed}}, {{elements}}, type<{{element}}>({{kept}})},
{{/outputs}}};

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "check: %s\n", why.c_str());
  std::exit(1);
}

Bytes read(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) stop("cannot read " + path);
  Bytes bytes;
  unsigned char part[65536];
  for (std::size_t got; (got = std::fread(part, 1, sizeof part, file)) > 0;) bytes.insert(bytes.end(), part, part + got);
  std::fclose(file);
  return bytes;
}

// SplitMix64's numbers: their leading bits as a fraction in [-1, 1) times the scale, perhaps without their sign; or one of the
// numbers that the input's meaning allows: indices, integers, truth values.
Bytes make(const Input& input) {
  Bytes bytes(static_cast<std::size_t>(input.elements * input.type.bytes));
  for (long long i = 0; i < input.elements; ++i) {
    unsigned long long z = input.seed + 0x9e3779b97f4a7c15ull * (static_cast<unsigned long long>(i) + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    const int kept = input.type.kept;
    const double value = input.count ? input.low + input.step * static_cast<double>((z >> 11) % input.count)
                                     : static_cast<double>(static_cast<long long>(z) >> (64 - kept)) / static_cast<double>(1ll << (kept - 1)) * input.scale;
    input.type.put(bytes.data() + i * input.type.bytes, input.positive ? std::fabs(value) : value);
  }
  return bytes;
}

// Whether `found` agrees with what is stored of the output.
bool agrees(const Output& output, const Bytes& found, const std::string& folder) {
  const Bytes values = read(folder + "/" + output.values);
  const Bytes indices = output.indices ? read(folder + "/" + output.indices) : Bytes();
  const long long count = static_cast<long long>(values.size() / sizeof(double));
  if (count == 0 || (output.indices ? indices.size() != values.size() : count != output.elements)) stop("the stored tensors are damaged");
  double error = 0, norm = 0;
  long long broken = 0;
  for (long long i = 0; i < count; ++i) {
    double expected;
    long long at = i;
    std::memcpy(&expected, values.data() + i * 8, 8);
    if (output.indices) std::memcpy(&at, indices.data() + i * 8, 8);
    if (at < 0 || at >= output.elements) stop("the stored tensors are damaged");
    const double value = output.type.number_at(found.data() + at * output.type.bytes);
    if (!std::isfinite(value) && std::isfinite(expected)) ++broken;
    if (std::isfinite(expected)) norm += expected * expected;
    if (value != expected) error += (value - expected) * (value - expected);
  }
  const double relative = norm > 0 ? std::sqrt(error / norm) : std::sqrt(error);
  const bool fine = broken == 0 && relative <= output.allowed;  // false for NaN
  std::printf("%s: relative error %.2e over %lld %s, allowed %.2e: %s\n", output.name, relative, count,
              output.indices ? "sampled elements" : "elements", output.allowed, fine ? "ok" : "WRONG");
  if (broken) std::printf("%s: %lld elements are not finite, or were never written\n", output.name, broken);
  return fine;
}

{{>engine_text}}
// Runs the kernels; fills `outputs` and returns the median time of a call in microseconds.
double compute(const std::vector<Bytes>& inputs, std::vector<Bytes>& outputs) {
  std::vector<void*> tensors;
  const auto place = [&](const Bytes& bytes) {
    tensors.push_back(allocate(bytes.size()));
    copy(tensors.back(), bytes.data(), bytes.size());
  };
  std::for_each(inputs.begin(), inputs.end(), place);
  std::for_each(outputs.begin(), outputs.end(), place);
  void* workspace = allocate({{bundle}}_workspace_bytes());
  std::vector<double> times;
  for (int i = 0; i < 11; ++i) times.push_back(call(tensors.data(), workspace));
  for (std::size_t i = 0; i < outputs.size(); ++i) copy(outputs[i].data(), tensors[inputs.size() + i], outputs[i].size());
  for (void* memory : tensors) release(memory);
  release(workspace);
  std::sort(times.begin() + 1, times.end());  // the first call also starts what the others find running
  return times[5];
}
}  // namespace
int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "check";
  std::vector<Bytes> inputs, outputs;
  for (const Input& input : kInputs) {
    inputs.push_back(input.file ? read(folder + "/" + input.file) : make(input));
    if (static_cast<long long>(inputs.back().size()) != input.elements * input.type.bytes) stop("the stored tensors are damaged");
  }
  for (const Output& output : kOutputs)  // all bits set is no number in every floating-point type
    outputs.emplace_back(static_cast<std::size_t>(output.elements * output.type.bytes), static_cast<unsigned char>(0xff));
  const double us = compute(inputs, outputs);
  bool fine = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) fine = agrees(kOutputs[i], outputs[i], folder) && fine;
  std::printf("median of 10 calls: %.2f us\n%s\n", us, fine ? "check passed" : "check FAILED");
  return fine ? 0 : 1;
}
