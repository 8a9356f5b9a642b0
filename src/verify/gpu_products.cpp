#include "verify/gpu_products.h"
#include "base/embedded.h"
#include "graph/parallel.h"
#include "verify/runner.h"
namespace warploom::verify {
namespace {
constexpr std::int64_t kMostWords = std::int64_t{1} << 30;  // of a problem
constexpr double kLeastPerWord = 32;                        // multiply-adds for each word that is copied
constexpr std::int64_t kPiece = 1 << 16;                    // elements that are converted together

// Where in its memory a problem's parts begin; what it begins with itself, as the kernel reads it.
struct Problem {
  std::int64_t m, n, k, batch, offsets, a_lines, a_depths, b_lines, b_depths, a, b, value, magnitude;
};

// The elements of its tensor that an operand reads, over a whole batch.
struct Range {
  std::int64_t begin = 0, size = 0;
};
Range range_of(const graph::Product& p, const graph::Operand& of, std::int64_t lines, std::int64_t graph::Offsets::*offset) {
  const auto [first, last] = std::minmax_element(of.lines, of.lines + lines);
  const auto [front, back] = std::minmax_element(of.depths, of.depths + p.k);
  const auto [low, high] = std::ranges::minmax(p.batch, {}, offset);
  const std::int64_t begin = *first + *front + low.*offset;
  return {begin, *last + *back + high.*offset + 1 - begin};
}

class Multiplier {
 public:
  explicit Multiplier(GpuProductOptions options) : options_(std::move(options)) {}

  bool multiply(const graph::Product& p, double* value, double* magnitude) {
    const auto batch = std::ssize(p.batch);
    const double work = static_cast<double>(p.m * p.n) * static_cast<double>(p.k * batch);
    if (given_up_ || work < std::max(options_.least, 1.0)) return false;
    const Range a = range_of(p, p.a, p.m, &graph::Offsets::a), b = range_of(p, p.b, p.n, &graph::Offsets::b);
    std::int64_t words = sizeof(Problem) / 8;
    const auto place = [&](std::int64_t size) { return std::exchange(words, words + size); };
    const Problem problem = {p.m,
                             p.n,
                             p.k,
                             batch,
                             place(2 * batch),
                             place(p.m),
                             place(p.k),
                             place(p.n),
                             place(p.k),
                             place(a.size),
                             place(b.size),
                             place(batch * p.m * p.n),
                             place(batch * p.m * p.n)};
    if (words > kMostWords || (options_.least > 0 && work < kLeastPerWord * static_cast<double>(words))) return false;
    given_up_ = !started();
    if (given_up_) return false;
    auto* const memory = reinterpret_cast<std::int64_t*>(memory_->base());
    std::memcpy(memory, &problem, sizeof problem);
    std::int64_t* offsets = memory + problem.offsets;
    for (const graph::Offsets& at : p.batch) *offsets++ = at.a - a.begin, *offsets++ = at.b - b.begin;
    std::copy_n(p.a.lines, p.m, memory + problem.a_lines);
    std::copy_n(p.a.depths, p.k, memory + problem.a_depths);
    std::copy_n(p.b.lines, p.n, memory + problem.b_lines);
    std::copy_n(p.b.depths, p.k, memory + problem.b_depths);
    auto* const numbers = reinterpret_cast<double*>(memory);
    convert(p.a, a, numbers + problem.a);
    convert(p.b, b, numbers + problem.b);
    process_.channel->send({{"words", words}, {"results", problem.value}});
    given_up_ = !process_.channel->receive(options_.limit_ms);
    if (given_up_) return process_.end(true), false;
    add(p, numbers + problem.value, value);
    add(p, numbers + problem.magnitude, magnitude);
    return true;
  }

 private:
  bool started() {
    if (process_.process > 0) return true;
    memory_ = SharedMemory::make(8 * kMostWords);
    return memory_ && process_.start(options_.program, kMultiplyCommand, memory_->file());
  }
  static void convert(const graph::Operand& from, const Range& range, double* to) {
    graph::parallel_for((range.size + kPiece - 1) / kPiece, 0, [&](std::int64_t piece) {
      const std::int64_t first = piece * kPiece;
      load_run(from.dtype, from.data, range.begin + first, 1, std::min(kPiece, range.size - first), to + first);
    });
  }
  static void add(const graph::Product& p, const double* results, double* to) {
    if (!to) return;
    graph::parallel_for(std::ssize(p.batch) * p.m, 0, [&](std::int64_t row) {
      double* const line = to + p.batch[static_cast<std::size_t>(row / p.m)].c + row % p.m * p.n;
      for (std::int64_t i = 0; i < p.n; ++i) line[i] += results[row * p.n + i];
    });
  }

  GpuProductOptions options_;
  std::shared_ptr<SharedMemory> memory_;
  Peer process_;
  bool given_up_ = false;
};

// Answers until the other side is gone, or something fails: the end of this process tells.
Status serve(Channel& channel, char* memory) {
  WARPLOOM_TRY(const auto gpu, runtime::Executor::open(Engine::cuda));
  constexpr std::int64_t kBlocks = 8;  // for each multiprocessor: they go over the tiles by turns
  const LaunchList list = product_list(gpu->info().arch, kBlocks * gpu->info().processors);
  WARPLOOM_TRY(const runtime::Binary binary, runtime::compile(list, {.allow_spills = true}));
  WARPLOOM_TRY(const runtime::Runnable kernel, gpu->load(list, binary));
  while (const auto message = channel.receive(-1)) {
    const std::int64_t bytes = 8 * message->at("words").get<std::int64_t>(),
                       given = 8 * message->at("results").get<std::int64_t>();
    WARPLOOM_TRY(const runtime::Buffer problem, gpu->allocate(bytes));
    WARPLOOM_CHECK(gpu->upload(problem, memory, given));
    WARPLOOM_TRY(const runtime::Call call, kernel.bind({{"problem", problem}}));
    WARPLOOM_CHECK(call());
    WARPLOOM_CHECK(gpu->download(problem, memory + given, bytes - given, given));
    channel.send({{"done", true}});
  }
  return ok();
}
}  // namespace
graph::ProductEngine gpu_products(const GpuProductOptions& options) {
  return [engine = std::make_shared<Multiplier>(options)](const graph::Product& product, double* value, double* magnitude) {
    return engine->multiply(product, value, magnitude);
  };
}

LaunchList product_list(const std::string& arch, std::int64_t blocks) {
  return {.arch = arch,
          .outputs = {{"problem", Dtype::i64, {sizeof(Problem) / 8}}},
          .kernels = {{.name = "oracle_product",
                       .source = resource("plain/product.cu"),
                       .grid = {blocks, 1, 1},
                       .threads = 256,
                       .args = {{.buffer = "problem"}}}}};
}

bool multiplier_main(int argc, char** argv, int* status) {
  return peer_main(kMultiplyCommand, 4, argc, argv, status,
                   [](Channel& channel, char* memory) { return serve(channel, memory) ? 0 : 1; });
}
}  // namespace warploom::verify
