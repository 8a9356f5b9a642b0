#include "verify/gpu_products.h"
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rendered.h"
#include "codegen/launch_list.h"
#include "graph/parallel.h"
#include "graph/reference.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "verify/channel.h"
#include "verify/shared_memory.h"

namespace warploom::verify {
namespace {
using graph::Offsets;
using graph::Operand;
using graph::Product;

constexpr int64_t kMostWords = int64_t{1} << 30;  // of a problem
constexpr double kLeastPerWord = 32;              // multiply-adds for each word that is copied
constexpr int64_t kPiece = 1 << 16;               // elements that are converted together

// Where in its memory a problem's parts begin: what it begins with itself, as the kernel reads it.
struct Side {
  int64_t offsets;
  int64_t lines;
  int64_t depths;
  int64_t data;
};

struct Problem {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t batch;
  Side a;
  Side b;
  int64_t value;
  int64_t magnitude;
};

// What an operand reads of its tensor over a whole batch, and where products begin in that.
struct Reads {
  int64_t begin = 0;
  int64_t size = 0;
  std::vector<int64_t> offsets;
};

Reads reads_of(const Product& p, const Operand& of, int64_t lines, int64_t Offsets::* offset) {
  Reads reads;
  for (const Offsets& at : p.batch)
    reads.offsets.push_back(at.*offset);
  int64_t last = 0;
  const std::span<const int64_t> tables[] = {
      {of.lines, of.lines + lines}, {of.depths, of.depths + p.k}, reads.offsets};
  for (const auto& table : tables) {
    const auto [low, high] = std::ranges::minmax(table);
    reads.begin += low;
    last += high;
  }
  for (int64_t& at : reads.offsets)
    at -= reads.begin;
  reads.size = last - reads.begin + 1;
  return reads;
}

struct Multiplier {
  GpuProductOptions options;
  std::shared_ptr<SharedMemory> memory;
  Peer process;
  bool given_up = false;

  bool multiply(const Product& p, double* value, double* magnitude) {
    const auto batch = std::ssize(p.batch);
    const auto results = batch * p.m * p.n;
    const double work = as_double(results) * as_double(p.k);
    if (given_up || work < std::max(options.least, 1.0)) return false;
    const Reads a = reads_of(p, p.a, p.m, &Offsets::a);
    const Reads b = reads_of(p, p.b, p.n, &Offsets::b);
    int64_t words = sizeof(Problem) / 8;
    const int64_t tables = 2 * (batch + p.k) + p.m + p.n;
    const int64_t all = words + tables + 2 * results + a.size + b.size;
    const std::string available = runtime::proc_value("/proc/meminfo", "MemAvailable:");
    const int64_t free_words = 128 * std::atoll(available.c_str());  // of 8 bytes, from KiB
    if (all > std::min(kMostWords, free_words / 4)) return false;
    if (options.least > 0 && work < kLeastPerWord * as_double(all)) return false;
    if (!memory) {
      memory = SharedMemory::make(8 * kMostWords);
      given_up = !memory || !process.start(options.program, kMultiplyCommand, memory->file());
      if (given_up) return false;
    }
    auto* const base = reinterpret_cast<int64_t*>(memory->base());
    auto* const numbers = reinterpret_cast<double*>(base);
    const auto place = [&](int64_t size) { return std::exchange(words, words + size); };
    const auto table = [&](const int64_t* of, int64_t size) {
      const int64_t at = place(size);
      std::copy_n(of, size, base + at);
      return at;
    };
    const auto side = [&](const Operand& of, int64_t lines, const Reads& reads) {
      Side made;
      made.offsets = table(reads.offsets.data(), batch);
      made.lines = table(of.lines, lines);
      made.depths = table(of.depths, p.k);
      made.data = place(reads.size);
      graph::parallel_for(ceil_div(reads.size, kPiece), 0, [&](int64_t piece) {
        const int64_t first = piece * kPiece;
        const int64_t count = std::min(kPiece, reads.size - first);
        load_run(of.dtype, of.data, reads.begin + first, 1, count, numbers + made.data + first);
      });
      return made;
    };
    const Problem problem = {
        p.m, p.n, p.k, batch, side(p.a, p.m, a), side(p.b, p.n, b), place(results), place(results)};
    std::memcpy(base, &problem, sizeof problem);
    process.channel->send({{"words", words}, {"results", problem.value}});
    given_up = !process.channel->receive(options.limit_ms);
    if (given_up) {
      process.end(true);
      return false;
    }
    graph::parallel_for(batch * p.m, 0, [&](int64_t row) {
      const int64_t at = p.batch[row / p.m].c + row % p.m * p.n;
      for (int64_t i = 0; i < p.n; ++i) {
        if (value) value[at + i] += numbers[problem.value + row * p.n + i];
        if (magnitude) magnitude[at + i] += numbers[problem.magnitude + row * p.n + i];
      }
    });
    return true;
  }
};

// Answers until the other side is gone, or something fails: the end of this process tells.
Status serve(Channel& channel, char* memory) {
  WARPLOOM_TRY(const auto gpu, runtime::Executor::open(Engine::cuda));
  constexpr int64_t kBlocks = 8;  // for each multiprocessor: they go over the tiles by turns
  const LaunchList list = product_list(gpu->info().arch, kBlocks * gpu->info().num_sms);
  WARPLOOM_TRY(const runtime::Binary binary,
               runtime::compile(list, {.most_spills = runtime::kAnySpills}));
  WARPLOOM_TRY(const runtime::Runnable kernel, gpu->load(list, binary));
  while (const auto message = channel.receive(-1)) {
    const int64_t all = 8 * message->at("words").get<int64_t>();
    const int64_t given = 8 * message->at("results").get<int64_t>();
    WARPLOOM_TRY(const runtime::Buffer problem, gpu->allocate(all));
    WARPLOOM_CHECK(gpu->upload(problem, memory, given));
    WARPLOOM_TRY(const runtime::Call call, kernel.bind({{"problem", problem}}));
    WARPLOOM_CHECK(call());
    WARPLOOM_CHECK(gpu->download(problem, memory + given, all - given, given));
    channel.send({{"done", true}});
  }
  return ok();
}
}  // namespace

graph::ProductEngine gpu_products(const GpuProductOptions& options) {
  const auto made = std::make_shared<Multiplier>();
  made->options = options;
  return [made](const Product& p, double* value, double* magnitude) {
    return made->multiply(p, value, magnitude);
  };
}

LaunchList product_list(const std::string& arch, int64_t blocks) {
  LaunchList list{.arch = arch, .outputs = {{"problem", Dtype::i64, {sizeof(Problem) / 8}}}};
  Kernel& kernel = list.kernels.emplace_back(
      Kernel{"oracle_product", resource("plain/product.cu"), {blocks, 1, 1}});
  kernel.threads = 256;
  kernel.args = {{.buffer = "problem"}};
  return list;
}

int multiply_for(Channel& channel, char* memory) {
  return serve(channel, memory) ? 0 : 1;
}
}  // namespace warploom::verify
