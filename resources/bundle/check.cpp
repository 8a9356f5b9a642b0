// Feeds {{bundle}} with known inputs and compares what it computes with the FP64 reference.
// Usage: check FOLDER, the folder of the stored tensors. Every output's relative Frobenius error
// must be at most what kOutputs says. Raw files are little-endian.
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
#include "median.h"
#include "warm_up.h"
{{^gpu}}#include "pool.h"
{{/gpu}}
namespace {
using Bytes = std::vector<unsigned char>;

// An element as a number, and back where the number is exact in the type.
template <class T>
double number_at(const unsigned char* at) {
  T x;
  std::memcpy(&x, at, sizeof x);
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(x);
  } else {
    return wl::to_float(x);
  }
}

template <class T>
void put(unsigned char* at, double value) {
  T x;
  if constexpr (std::is_arithmetic_v<T>) {
    x = static_cast<T>(value);
  } else {
    x = wl::cast<T>(static_cast<float>(value));
  }
  std::memcpy(at, &x, sizeof x);
}

struct Type {
  int bytes;
  int kept;  // leading bits of a random number that the type holds
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
  double low;                // the numbers are `count`, from `low` on, `step` apart
  double step;               // (indices, integers, truth values)
  unsigned long long count;  // 0: any number
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
{{#inputs}}    { {{called}}, {{file}}, {{seed}}ull, {{scale}}, {{positive}},
      {{low}}, {{step}}, {{count}}ull, {{elements}}, type<{{element}}>({{kept}})},
{{/inputs}}};

const Output kOutputs[] = {
{{#outputs}}    { {{called}}, {{file}}, {{indices}}, {{allowed}},
      {{elements}}, type<{{element}}>({{kept}})},
{{/outputs}}};

constexpr std::size_t kInputCount = sizeof kInputs / sizeof kInputs[0];
constexpr std::size_t kOutputCount = sizeof kOutputs / sizeof kOutputs[0];

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "check: %s\n", why.c_str());
  std::exit(1);
}

Bytes read(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) stop("cannot read " + path);
  Bytes bytes;
  unsigned char part[65536];
  while (true) {
    const std::size_t got = std::fread(part, 1, sizeof part, file);
    if (got == 0) break;
    bytes.insert(bytes.end(), part, part + got);
  }
  std::fclose(file);
  return bytes;
}

// SplitMix64's i-th number.
unsigned long long random_bits(unsigned long long seed, long long i) {
  unsigned long long z = seed + 0x9e3779b97f4a7c15ull * (static_cast<unsigned long long>(i) + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// One of the numbers that the input's meaning allows; or the leading bits as a fraction in [-1, 1)
// times the scale.
double value_of(const Input& input, unsigned long long bits) {
  if (input.count > 0) {
    const unsigned long long number = (bits >> 11) % input.count;
    return input.low + input.step * static_cast<double>(number);
  }
  const int kept = input.type.kept;
  const long long leading = static_cast<long long>(bits) >> (64 - kept);
  const double fraction = static_cast<double>(leading) / static_cast<double>(1ll << (kept - 1));
  return fraction * input.scale;
}

Bytes make(const Input& input) {
  Bytes bytes(static_cast<std::size_t>(input.elements * input.type.bytes));
  for (long long i = 0; i < input.elements; ++i) {
    const double value = value_of(input, random_bits(input.seed, i));
    unsigned char* const at = bytes.data() + i * input.type.bytes;
    input.type.put(at, input.positive ? std::fabs(value) : value);
  }
  return bytes;
}

// Whether `found` agrees with what is stored of the output.
bool agrees(const Output& output, const Bytes& found, const std::string& folder) {
  const Bytes values = read(folder + "/" + output.values);
  const Bytes indices = output.indices ? read(folder + "/" + output.indices) : Bytes();
  const long long count = static_cast<long long>(values.size() / sizeof(double));
  const bool whole = output.indices == nullptr;
  const bool fits = whole ? count == output.elements : indices.size() == values.size();
  if (count == 0 || !fits) stop("the stored tensors are damaged");
  double error = 0;
  double norm = 0;
  long long broken = 0;
  for (long long i = 0; i < count; ++i) {
    double expected;
    long long at = i;
    std::memcpy(&expected, values.data() + i * 8, 8);
    if (output.indices) std::memcpy(&at, indices.data() + i * 8, 8);
    if (at < 0 || at >= output.elements) stop("the stored tensors are damaged");
    const double value = output.type.number_at(found.data() + at * output.type.bytes);
    if (!std::isfinite(value) || !std::isfinite(expected)) {  // then they must be the same
      const bool both_nan = std::isnan(value) && std::isnan(expected);
      broken += !both_nan && value != expected;
      continue;
    }
    norm += expected * expected;
    error += (value - expected) * (value - expected);
  }
  const double relative = norm > 0 ? std::sqrt(error / norm) : std::sqrt(error);
  const bool fine = broken == 0 && relative <= output.allowed;
  std::printf("%s: relative error %.2e over %lld %s, allowed %.2e: %s\n", output.name, relative,
              count, whole ? "elements" : "sampled elements", output.allowed,
              fine ? "ok" : "WRONG");
  if (broken > 0)
    std::printf("%s: %lld elements are infinite or NaN where they should not be, or the other way "
                "round\n",
                output.name, broken);
  return fine;
}

{{>engine_text}}

// What `warploom bench` says of the same kernels, taken in the same way: the first calls do not
{{#gpu}}// count, nor those while the card warms up (warm_up.h), and caches hold other data before
// each sample.
{{/gpu}}{{^gpu}}// count, caches are warm, and a sample is the mean of as many calls as take a
// millisecond.
{{/gpu}}struct Timing {
  wl::Interval us;
  std::vector<double> samples;
  int calls = 1;    // of a sample
  int untimed = 0;  // samples before the first that counts
};

Timing timed(Engine& engine) {
  constexpr double kBudgetUs = 300e3;
  constexpr std::size_t kLeast = 5;
  constexpr std::size_t kMost = 100;
  Timing timing;
  constexpr int kFirst = 4;  // tell how long a call is, all but the very first
  engine.sample(1);
  double shortest = engine.sample(1);
  for (int i = 2; i < kFirst; ++i) shortest = std::min(shortest, engine.sample(1));
  const double wanted = std::ceil(Engine::kSampleUs / std::max(shortest, 0.1));
  timing.calls = static_cast<int>(std::min(400.0, std::max(1.0, wanted)));
  timing.untimed = kFirst;
  for (const wl::WarmUp warm_up(Engine::kWarmUpMs); warm_up.is_due(); ++timing.untimed)
    engine.sample(timing.calls);
  const auto start = std::chrono::steady_clock::now();
  const auto spent_us = [&start] {
    const auto spent = std::chrono::steady_clock::now() - start;
    return std::chrono::duration<double, std::micro>(spent).count();
  };
  const auto enough = [&] {
    const std::size_t taken = timing.samples.size();
    if (taken == 0) return false;
    if (taken >= kMost || spent_us() > 5 * kBudgetUs) return true;
    return taken >= kLeast && spent_us() > kBudgetUs;
  };
  while (!enough()) timing.samples.push_back(engine.sample(timing.calls));
  timing.us = wl::median_interval(timing.samples.data(), timing.samples.size());
  return timing;
}

// Runs the kernels; fills `outputs`.
Timing compute(const std::vector<Bytes>& inputs, std::vector<Bytes>& outputs) {
  std::vector<void*> tensors;
  const auto place = [&](const Bytes& bytes) {
    tensors.push_back(allocate(bytes.size()));
    copy(tensors.back(), bytes.data(), bytes.size());
  };
  std::for_each(inputs.begin(), inputs.end(), place);
  std::for_each(outputs.begin(), outputs.end(), place);
  void* workspace = allocate({{bundle}}_workspace_bytes());
  Engine engine{tensors.data(), workspace};
{{#prepares}}  engine.prepare_constants();
{{/prepares}}  const Timing timing = timed(engine);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    copy(outputs[i].data(), tensors[inputs.size() + i], outputs[i].size());
  for (void* memory : tensors) release(memory);
  release(workspace);
  return timing;
}

// The time, and whether something came between: then it is no property of the kernels.
void print(Timing timing) {
  std::printf("time: median %.2f us, 95 %% of medians %.2f to %.2f us (%zu samples of %d calls, "
              "after %d untimed)\n",
              timing.us.median, timing.us.low, timing.us.high, timing.samples.size(),
              timing.calls, timing.untimed);
  std::sort(timing.samples.begin(), timing.samples.end());
  const std::size_t last = timing.samples.size() - 1;
  const double middle = timing.samples[last - last / 10] - timing.samples[last / 10];
  const double spread = middle / timing.us.median;
  if (spread > 0.35)
    std::printf("machine: busy (samples spread over %.1f times their median): do not rely on the "
                "time; the fastest took %.2f us\n",
                spread, timing.samples[0]);
}
}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "check";
  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
  for (const Input& input : kInputs) {
    inputs.push_back(input.file ? read(folder + "/" + input.file) : make(input));
    const auto bytes = static_cast<long long>(inputs.back().size());
    if (bytes != input.elements * input.type.bytes) stop("the stored tensors are damaged");
  }
  for (const Output& output : kOutputs) {
    // All bits set is no number in every floating-point type.
    const unsigned char poison = 0xff;
    outputs.emplace_back(static_cast<std::size_t>(output.elements * output.type.bytes), poison);
  }
  const Timing timing = compute(inputs, outputs);
  bool fine = true;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    fine = agrees(kOutputs[i], outputs[i], folder) && fine;
  print(timing);
  std::printf("%s\n", fine ? "check passed" : "check FAILED");
  return fine ? 0 : 1;
}
