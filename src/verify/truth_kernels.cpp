#include "verify/truth_kernels.h"
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/rendered.h"
#include "base/value_op.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "verify/truth_work.h"

namespace warploom::verify {
namespace {
constexpr int kThreads = 256;       // of a block on a GPU, as the text has it
constexpr int64_t kBlocksEach = 8;  // of a multiprocessor
constexpr int64_t kCpuBlocks = 16;
constexpr int64_t kTaskBytes = 1 << 14;

// Each kernel is a text of its own, made of its file's: compilers take them at the same time.
struct KernelFile {
  const char* file;
  std::vector<const char*> kernels;
  bool has_ops = false;  // it applies value operations
};

const std::vector<KernelFile>& kernel_files() {
  static const std::vector<KernelFile> files = {
      {"pointwise.cu", {"truth_pointwise", "truth_pointwise_any"}, true},
      {"steps.cu",
       {"truth_copy", "truth_gather", "truth_reduce_each", "truth_reduce_together", "truth_merge",
        "truth_scan_each", "truth_scan_together", "truth_mark", "truth_nan", "truth_same",
        "truth_move", "truth_hash"}},
      {"product.cu", {"truth_product", "truth_product_errors", "truth_product_whole"}},
      {"compare.cu", {"truth_compare"}},
      {"draw.cu", {"truth_draw"}},
  };
  return files;
}

// Which of a file's kernels a text is for.
std::string entries_text(const KernelFile& file, std::string_view kernel) {
  std::string text;
  for (const char* name : file.kernels)
    text += fmt::format("#define KERNEL_{} {}\n", name, name == kernel ? "ENTRY" : "BODY");
  return text;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// An expression of base/value_ops.def in the words of the kernels.
std::string in_kernels(std::string text) {
  text = replaced(std::move(text), "::warploom::rounded(::warploom::Dtype::", "rounded(TYPE_");
  text = replaced(std::move(text), "std::numbers::", "number_");
  text = replaced(std::move(text), "std::fmax", "number_fmax");
  text = replaced(std::move(text), "std::fmin", "number_fmin");
  return replaced(std::move(text), "std::", "");
}

// The types, by their places.
std::string types_text() {
  std::string names;
  std::string rows = "#define TYPE_ROWS";
#define WARPLOOM_DTYPE(name, bits, mantissa, ...) \
  names += fmt::format("TYPE_{}, ", #name);       \
  rows += fmt::format(" TYPE_ROW({}, {}, {})", #name, bits, mantissa);
#include "base/dtype.def"
  return "enum Type { " + names + "};\n" + rows + "\n";
}

std::string shapes_text() {
  std::string names;
#define WARPLOOM_INPUT_SHAPE(name) names += fmt::format("SHAPE_{}, ", #name);
#include "verify/input_shapes.def"
  return "enum Shape { " + names + "};\n";
}

std::string op_names_text() {
  std::string names;
#define WARPLOOM_VALUE_OP(name, ...) names += fmt::format("OP_{}, ", #name);
#include "base/value_ops.def"
  return "enum Op { " + names + "};\n";
}

// What each of these operations gives, and how far that moves. A graph has few of them, and a
// compiler takes longer over all than over anything else here.
std::string ops_text(const std::set<ValueOp>& ops) {
  std::string gives;
  std::string moves;
  const auto add = [&](ValueOp op, const char* name, const char* fp64, const char* moved) {
    if (!ops.contains(op)) return;
    gives += fmt::format("    case OP_{}: return {};\n", name, in_kernels(fp64));
    moves += fmt::format("    case OP_{}: return {};\n", name, in_kernels(moved));
  };
#define WARPLOOM_VALUE_OP(name, arity, fp64, moved) add(ValueOp::name, #name, #fp64, #moved);
#include "base/value_ops.def"
  return fmt::format(
      R"(FUNCTION double apply(Word op, double a, double b, double c) {{
  switch (op) {{
{}  }}
  return 0;
}}

FUNCTION double moved(Word op, double a, double b, double c, double v, double x, double y,
                      double z) {{
  const double number_ln2 = 0.693147180559945309417232121458;
  const double number_inv_sqrtpi = 0.564189583547756286948079451561;
  const double taken = v == a ? x : y;
  const bool has_infinity = is_infinite(a) || is_infinite(b);
  const double choice = has_infinity ? taken : larger_error(x, y);
  switch (op) {{
{}  }}
  return 0;
}}
)",
      gives, moves);
}
}  // namespace

LaunchList truth_list(Engine engine, const std::string& arch, int64_t blocks,
                      const std::set<ValueOp>& ops) {
  const bool cuda = engine == Engine::cuda;
  std::string head = fmt::format("#define BLOCKS {}\n", blocks);
  head += resource("truth/tasks.h");
  head += types_text() + op_names_text() + shapes_text();
  head += resource(cuda ? "truth/cuda.h" : "truth/cpu.h");
  head += resource("truth/numbers.h") + resource("truth/values.h");
  LaunchList list{.engine = engine, .arch = arch};
  list.outputs = {{"task", Dtype::u8, {kTaskBytes}}};
  for (const KernelFile& file : kernel_files()) {
    const std::string applied = file.has_ops ? ops_text(ops) : "";
    const std::string kernels = applied + resource(fmt::format("truth/{}", file.file));
    for (const char* name : file.kernels) {
      const std::string text = entries_text(file, name) + head + kernels;
      Kernel& kernel = list.kernels.emplace_back(Kernel{name, text, {blocks, 1, 1}});
      kernel.threads = cuda ? kThreads : 1;
      kernel.args = {{.buffer = "task"}};
    }
  }
  return list;
}

Result<TruthKernels> TruthKernels::load(runtime::Executor& device, const TruthWork& work) {
  static_assert(sizeof(tasks::PointwiseTask) <= kTaskBytes);
  TruthKernels made(device);
  const bool cuda = device.engine() == Engine::cuda;
  made.blocks_ = cuda ? kBlocksEach * device.info().num_sms : kCpuBlocks;
  made.list_ = truth_list(device.engine(), device.info().arch, made.blocks_, work.operations);
  WARPLOOM_CHECK(made.compile(work.kernels));
  WARPLOOM_TRY(made.task_, device.allocate(kTaskBytes));
  return made;
}

namespace {
// Those of the list, all of them at the same time.
Result<runtime::Binary> compiled(const LaunchList& list) {
  runtime::Turns turns(std::ssize(list.kernels));
  return runtime::compile(list, {.most_spills = runtime::kAnySpills, .turns = &turns});
}

LaunchList only(LaunchList list, const std::set<std::string>& kernels) {
  std::erase_if(list.kernels, [&](const Kernel& one) { return !kernels.contains(one.name); });
  return list;
}
}  // namespace

void compile_truth_kernels(const TruthWork& work, const std::string& arch, int num_sms) {
  const LaunchList list = truth_list(Engine::cuda, arch, kBlocksEach * num_sms, work.operations);
  (void)compiled(only(list, work.kernels));
}

Status TruthKernels::compile(const std::set<std::string>& kernels) {
  const LaunchList some = only(list_, kernels);
  WARPLOOM_TRY(const runtime::Binary binary, compiled(some));
  for (size_t i = 0; i < some.kernels.size(); ++i)
    images_[some.kernels[i].name] = binary.images[i];
  return ok();
}

Status TruthKernels::call(const std::string& kernel) {
  runtime::Call& known = calls_[kernel];
  if (!known) {
    if (!images_.contains(kernel)) WARPLOOM_CHECK(compile({kernel}));
    const LaunchList one = only(list_, {kernel});
    const runtime::Binary binary{"", {images_.at(kernel)}};
    WARPLOOM_TRY(const runtime::Runnable loaded, device_->load(one, binary));
    WARPLOOM_TRY(known, loaded.bind({{"task", task_}}));
  }
  return known();
}
}  // namespace warploom::verify
