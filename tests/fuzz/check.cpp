#include "check.h"
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>
#include "base/random.h"
#include "kernels/lower.h"
#include "runtime/compile.h"
#include "runtime/emulate.h"
#include "tile/interpret.h"
#include "tile/print.h"
#include "tile/verify.h"
namespace warploom::fuzz {
namespace {
using Storage = std::map<std::string, std::vector<std::byte>>;

// One program on one target, on its way.
struct Job {
  const Case* made = nullptr;
  std::string target;
  LaunchList list;
  Outcome* outcome = nullptr;
};

void set(Outcome& outcome, const Error& error) {
  outcome.code = code_text(error.code);
  outcome.detail = describe(error);
}

bool is_nan(Dtype dtype, const std::byte* data, std::size_t i) { return std::isnan(load_as_double(dtype, data, i)); }

Storage inputs_of(const Case& c) {
  Storage storage;
  for (const tile::Tensor& t : c.program.tensors) {
    if (t.scope != tile::Scope::global) continue;
    std::size_t count = 1;
    for (std::size_t d = 0; d < t.shape.size(); ++d) count += static_cast<std::size_t>((t.shape[d] - 1) * t.strides[d]);
    auto& bytes = storage[t.name];
    bytes.assign(count * static_cast<std::size_t>(bytes_of(t.dtype)), std::byte{0xff});
    if (t.writable) continue;
    Random random(c.seed, t.name);
    for (std::size_t i = 0; i < count; ++i) {
      const bool natural = t.dtype == Dtype::boolean || t.dtype == Dtype::u8;
      if (c.data == Data::raw && t.dtype != Dtype::boolean && t.dtype != Dtype::tf32 && t.dtype != Dtype::i64) {
        const std::uint64_t bits = random.next();
        const auto size = static_cast<std::size_t>(bytes_of(t.dtype));
        std::memcpy(bytes.data() + i * size, &bits, size);
        if (is_float(t.dtype) && is_nan(t.dtype, bytes.data(), i)) std::memset(bytes.data() + i * size, 0, size);
      } else if (natural) {
        store_from_double(t.dtype, bytes.data(), i, static_cast<double>(random.below(t.dtype == Dtype::boolean ? 2 : 4)));
      } else if (c.data != Data::real || !is_float(t.dtype)) {
        store_from_double(t.dtype, bytes.data(), i, static_cast<double>(random.below(7)) - 3);
      } else {
        store_from_double(t.dtype, bytes.data(), i, 4 * random.uniform() - 2);
      }
    }
  }
  return storage;
}

template <class Views>
Views views_of(Storage& storage) {
  Views views;
  for (auto& [name, bytes] : storage) views[name] = bytes;
  return views;
}

// Texts in one: what they define or include first once, each in a namespace of its own.
std::string joined(const std::vector<std::string>& texts) {
  std::string head, body;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    body += fmt::format("namespace part_{} {{\n", i);
    std::istringstream lines(texts[i]);
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("#include") && !line.starts_with("#define")) body += line + "\n";
      else if (seen.insert(line).second) head += line + "\n";
    body += "}\n";
  }
  return head + body;
}

// Buffers whose ends are the ends of pages that can be read, up to 63 bytes of padding, so that a kernel that reads on faults.
class Guarded {
 public:
  explicit Guarded(const std::vector<std::byte>& bytes) : bytes_(bytes.size()) {
    const std::size_t body = (bytes.size() + 63) / 64 * 64;
    mapped_ = (body + 4095) / 4096 * 4096 + 2 * 4096;
    base_ = static_cast<std::byte*>(::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(base_ + 4096, mapped_ - 2 * 4096, PROT_READ | PROT_WRITE);
    std::memset(base_ + 4096, 0xa5, mapped_ - 2 * 4096);
    data_ = base_ + mapped_ - 4096 - body;
    std::memcpy(data_, bytes.data(), bytes.size());
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { ::munmap(base_, mapped_); }
  std::byte* data() const { return data_; }
  bool intact() const {  // round the buffer
    for (const std::byte* p = base_ + 4096; p < base_ + mapped_ - 4096; ++p)
      if ((p < data_ || p >= data_ + bytes_) && *p != std::byte{0xa5}) return false;
    return true;
  }

 private:
  std::byte *base_ = nullptr, *data_ = nullptr;
  std::size_t bytes_ = 0, mapped_ = 0;
};

Status run_on_cpu(const LaunchList& list, const runtime::Binary& binary, Storage& storage) {
  const Kernel& kernel = list.kernels[0];
  void* library = ::dlopen(binary.images[0].c_str(), RTLD_NOW | RTLD_LOCAL);
  auto* function = library ? reinterpret_cast<CpuKernel>(::dlsym(library, kernel.name.c_str())) : nullptr;
  if (!function) return fail({ErrorCode::kInternal, "the kernel cannot be loaded", kernel.name});
  std::map<std::string, std::unique_ptr<Guarded>> buffers;
  std::vector<void*> pointers;
  for (const Argument& argument : kernel.args) {
    auto& buffer = buffers[argument.buffer];
    if (!buffer) buffer = std::make_unique<Guarded>(storage.at(argument.buffer));
    pointers.push_back(buffer->data());
  }
  const auto bytes = static_cast<std::size_t>((kernel.shared_bytes + 8191) / 4096 * 4096);
  const std::unique_ptr<void, void (*)(void*)> scratch(std::aligned_alloc(4096, bytes), std::free);
  std::fill_n(static_cast<float*>(scratch.get()), bytes / 4, __builtin_nanf(""));
  for (long long task = 0; task < kernel.grid[0] * kernel.grid[1] * kernel.grid[2]; ++task)
    function(pointers.data(), task, scratch.get());
  for (auto& [name, buffer] : buffers) {
    if (!buffer->intact()) return fail({ErrorCode::kCandidateWroteInput, "the kernel wrote outside a buffer", name});
    std::memcpy(storage.at(name).data(), buffer->data(), storage.at(name).size());
  }
  ::dlclose(library);
  return ok();
}

// "" or the first element that differs by more than it may.
std::string difference(const Case& c, const Storage& meant, const Storage& made) {
  for (const tile::Tensor& t : c.program.tensors) {
    if (t.scope != tile::Scope::global) continue;
    const auto &want = meant.at(t.name), &got = made.at(t.name);
    if (want == got) continue;
    const auto known = c.known.find(t.name);
    const bool bits = !t.writable || c.data == Data::raw || known == c.known.end();
    for (std::size_t i = 0; i < want.size() / static_cast<std::size_t>(bytes_of(t.dtype)); ++i) {
      const auto size = static_cast<std::size_t>(bytes_of(t.dtype));
      if (std::memcmp(want.data() + i * size, got.data() + i * size, size) == 0) continue;
      const double a = load_as_double(t.dtype, want.data(), i), b = load_as_double(t.dtype, got.data(), i);
      if (!bits && (a == b || std::fabs(a - b) <= known->second.error)) continue;
      return fmt::format("{}[{}]: {} meant, {} made, {} allowed", t.name, i, a, b, bits ? 0 : known->second.error);
    }
  }
  return "";
}

// The steps before a target: text and back, and the meaning.
bool meaning(const Case& c, Storage& meant, Outcome& outcome) {
  if (const auto valid = tile::verify(c.program); !valid) return set(outcome, valid.error()), false;
  const std::string text = tile::print(c.program);
  const auto parsed = tile::parse(text);
  if (!parsed) return set(outcome, parsed.error()), false;
  if (const std::string again = tile::print(*parsed); again != text) {
    outcome.code = "wrong", outcome.detail = "the text parses to another program:\n" + again;
    return false;
  }
  meant = inputs_of(c);
  if (const auto done = tile::interpret(c.program, views_of<tile::Buffers>(meant)); !done)
    return set(outcome, done.error()), false;
  return true;
}

void finish(const Job& job, const Storage& meant, const runtime::Binary* binary) {
  Storage made = inputs_of(*job.made);
  const auto ran = binary ? run_on_cpu(job.list, *binary, made) : [&]() -> Status {
    const runtime::EmulateOptions options{.seed = job.made->seed, .timing = static_cast<int>(job.made->seed % 3)};
    WARPLOOM_TRY([[maybe_unused]] const auto emulation,
                 runtime::emulate(job.list, views_of<runtime::EmulatedBuffers>(made), options));
    return ok();
  }();
  if (!ran) return set(*job.outcome, ran.error());
  job.outcome->detail = difference(*job.made, meant, made);
  job.outcome->code = job.outcome->detail.empty() ? "agrees" : "wrong";
}
}  // namespace
bool Outcome::is_bug() const {
  static const std::set<std::string> kFine = {"agrees", "no-layout", "no-instruction", "resource-limit"};
  return !kFine.contains(code);
}

std::vector<Outcome> check_cases(const std::vector<Case>& cases, const std::function<void(int)>& working_on) {
  std::vector<Outcome> outcomes;
  std::vector<Storage> meant(cases.size());
  std::vector<Job> jobs;
  for (const Case& c : cases)
    for (const std::string& target : c.targets) outcomes.push_back({c.seed, c.kind, target});
  std::vector<std::size_t> case_of;
  std::size_t next = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    working_on(static_cast<int>(i));
    const bool means = meaning(cases[i], meant[i], outcomes[next]);
    for (const std::string& target : cases[i].targets) {
      Outcome& outcome = outcomes[next++];
      if (!means) {
        if (outcome.code.empty()) outcome.code = outcomes[next - 2].code, outcome.detail = outcomes[next - 2].detail;
        continue;
      }
      auto lowered = kernels::lower(cases[i].program, *target::capabilities_of(target));
      if (!lowered) {
        set(outcome, lowered.error());
        continue;
      }
      jobs.push_back({&cases[i], target, std::move(lowered->list), &outcome});
      case_of.push_back(i);
    }
  }
  // One text for all GPUs' kernels, which the emulator compiles, one for the CPU's.
  for (const bool gpu : {true, false}) {
    std::vector<std::size_t> mine;
    std::vector<std::string> texts;
    for (std::size_t j = 0; j < jobs.size(); ++j)
      if ((jobs[j].list.engine == Engine::cuda) == gpu) mine.push_back(j), texts.push_back(jobs[j].list.kernels[0].source);
    if (mine.empty()) continue;
    const std::string text = mine.size() == 1 ? texts[0] : joined(texts);
    for (const std::size_t j : mine) jobs[j].list.kernels[0].source = text;
    for (std::size_t at = 0; at < mine.size(); ++at) {
      const Job& job = jobs[mine[at]];
      working_on(at == 0 ? -1 : static_cast<int>(case_of[mine[at]]));  // the first of them has the text compiled
      if (gpu) {
        finish(job, meant[case_of[mine[at]]], nullptr);
      } else if (const auto binary = runtime::compile(job.list, {.time = std::chrono::minutes(10)}); binary) {
        finish(job, meant[case_of[mine[at]]], &*binary);
      } else {
        set(*job.outcome, binary.error());
      }
      if (job.outcome->code != "compile-failed" || mine.size() == 1) continue;
      // Somebody's text does not compile: each alone, to see whose.
      for (std::size_t k = 0; k < mine.size(); ++k) {
        Case alone = *jobs[mine[k]].made;
        alone.targets = {jobs[mine[k]].target};
        working_on(static_cast<int>(case_of[mine[k]]));
        *jobs[mine[k]].outcome = check_case(alone)[0];
      }
      break;
    }
  }
  return outcomes;
}

std::vector<Outcome> check_case(const Case& one) { return check_cases({one}); }
}  // namespace warploom::fuzz
