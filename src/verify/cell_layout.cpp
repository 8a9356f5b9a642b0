#include "verify/cell_layout.h"
#include <fmt/format.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "verify/bytes.h"
#include "verify/cell.h"
#include "verify/cell_code.h"
#include "verify/cell_image.h"
#include "verify/cell_plan.h"
#include "verify/shared_memory.h"

namespace warploom::verify {
namespace {
constexpr uint64_t kPage = 4096;
constexpr uint64_t kHuge = uint64_t{2} << 20;

struct AddressRange {
  uint64_t low;
  uint64_t high;
};

// Where cells begin: below where programs' memory lies, and above sanitizers' shadows.
constexpr AddressRange kUsual = {uint64_t{0x7000} << 32, uint64_t{0x7800} << 32};
// Where programs have their heaps and what they map, and two where none has anything.
constexpr AddressRange kElsewhere[] = {{uint64_t{0x5500} << 32, uint64_t{0x5600} << 32},
                                       {uint64_t{0x7e00} << 32, uint64_t{0x7fe0} << 32},
                                       {uint64_t{0x0010} << 32, uint64_t{0x0100} << 32},
                                       {uint64_t{0x2000} << 32, uint64_t{0x3000} << 32}};
constexpr uint64_t kTop = (uint64_t{1} << 47) - kPage;  // of what a process can map
constexpr uint64_t kCodeRoom = uint64_t{4} << 30;       // before the shared memory begins
constexpr size_t kControlBytes = 64 << 10;
// At the beginning of the control page, before the first round: the entry, then
constexpr size_t kFilter = 512;
constexpr size_t kInstruction = 1024;
constexpr size_t kStacks = 2048;
constexpr size_t kGaps = 32768;
// At a stack's end, for what lies above a kernel's frame where it is called.
constexpr uint64_t kAbove = 2048;

int protection_of(const CellPiece& piece) {
  if (piece.writable) return PROT_READ | PROT_WRITE;
  return piece.executable ? PROT_READ | PROT_EXEC : PROT_READ;
}

// As /proc/…/maps writes rights: "r-xp".
std::string rights_of(const CellRegion& region) {
  std::string words = "---p";
  if (region.rights & PROT_READ) words[0] = 'r';
  if (region.rights & PROT_WRITE) words[1] = 'w';
  if (region.rights & PROT_EXEC) words[2] = 'x';
  if (!region.of_code) words[3] = 's';
  return words;
}
}  // namespace

CellLayout::~CellLayout() {
  if (code_file_ >= 0) ::close(code_file_);
}

// All in one place, code in front; or each part in a place of its own, in any order, so that nobody
// tells the judge by how far what lies from what.
Status CellLayout::place_image() {
  constexpr uint64_t kLine = 64;
  constexpr size_t kMostPlaces = 16;  // of buffers
  Random random(options_.seed, "cell");
  const auto within = [&](const AddressRange& range) {
    return range.low + kHuge * random.below((range.high - range.low) / kHuge);
  };
  if (!is_elsewhere()) {
    const uint64_t base = within(kUsual);
    arena_ = base + kCodeRoom;
    const CellPlaces places{.base = base, .own_code = kLine * random.below(kPage / kLine)};
    WARPLOOM_TRY(image_, CellImage::make(places, options_.functions));
    if (image_.end <= arena_) return ok();
    return fail({ErrorCode::kResourceLimit, "the code of a candidate is too large", "",
                 "at most 4 GB", fmt::format("{} bytes", image_.end - base)});
  }
  const auto anywhere = [&] { return within(kElsewhere[random.below(std::size(kElsewhere))]); };
  const AddressRange& first = kElsewhere[as_size(options_.elsewhere) % std::size(kElsewhere)];
  arena_ = anywhere();
  std::vector<uint64_t> arenas;
  for (size_t i = 0; i < std::min(options_.mapped.size(), kMostPlaces); ++i)
    arenas.push_back(i == 0 ? within(first) : anywhere());
  for (size_t i = 0; i < options_.mapped.size(); ++i)
    apart_.push_back({options_.mapped[i].extent, arenas[i % kMostPlaces]});
  const CellPlaces places{.base = anywhere(), .apart = anywhere, .own_code = random.below(kPage)};
  WARPLOOM_TRY(image_, CellImage::make(places, options_.functions));
  return ok();
}

Status CellLayout::make() {
  WARPLOOM_CHECK(place_image());
  WARPLOOM_CHECK(allocate());
  list_regions();
  WARPLOOM_CHECK(write_code_file());
  renew(options_.seed);
  write_entry();
  return ok();
}

uint64_t CellLayout::address_of(const void* ours) const {
  const int64_t offset = memory_->offset(ours);
  for (const Apart& one : apart_)
    if (one.extent.offset <= offset && offset < one.extent.offset + one.extent.bytes)
      return one.arena + as_uint64(offset);
  return arena_ + as_uint64(offset);
}

uint64_t CellLayout::thread_pointer(int thread) const {
  return address_of(threads_[as_size(thread)].local.get()) + CellImage::kThreadPointer;
}

uint64_t CellLayout::end_of_stack(int thread) const {
  return address_of(threads_[as_size(thread)].stack.get()) + kPage + kStack;
}

// As a function is entered: with a return address, here one that leads nowhere.
uint64_t CellLayout::begin_of_stack(int thread) const {
  constexpr uint64_t kBelow = 128;
  return end_of_stack(thread) - kAbove - drop_ - kBelow - sizeof(uint64_t);
}

Result<std::shared_ptr<void>> CellLayout::take(uint64_t bytes) {
  std::shared_ptr<void> memory = memory_->allocate(as_int64(bytes));
  if (memory) return memory;
  return fail({ErrorCode::kOutOfMemory, "no memory for a candidate's threads", "",
               fmt::format("{} bytes", bytes), "none left", "take a smaller problem"});
}

Status CellLayout::allocate() {
  WARPLOOM_TRY(control_, take(kControlBytes));
  threads_.resize(as_size(options_.threads) + 1);
  for (ThreadMemory& thread : threads_) {
    WARPLOOM_TRY(thread.stack, take(kPage + kStack));
    WARPLOOM_TRY(thread.local, take(kPage));
  }
  for (const CellPiece& piece : image_.pieces) {
    if (!piece.writable) continue;
    WARPLOOM_TRY(std::shared_ptr<void> copy, take(piece.bytes.size()));
    variables_.emplace_back(&piece, std::move(copy));
  }
  return ok();
}

std::string CellLayout::input_at(uint64_t address) const {
  for (const CellMapped& one : options_.mapped) {
    const uint64_t begin = address_of(memory_->base() + one.extent.offset);
    if (begin <= address && address - begin < as_uint64(one.extent.bytes)) return one.input;
  }
  return "";
}

void CellLayout::map_shared(const void* ours, uint64_t bytes, uint64_t address, bool writable) {
  regions_.push_back({.address = address,
                      .bytes = bytes,
                      .offset = as_uint64(memory_->offset(ours)),
                      .of_code = 0,
                      .rights = writable ? PROT_READ | PROT_WRITE : PROT_READ});
}

// What the cell maps, and of which file.
void CellLayout::list_regions() {
  uint64_t offset = 0;
  for (const CellPiece& piece : image_.pieces) {
    if (piece.writable) continue;
    regions_.push_back({.address = piece.address,
                        .bytes = piece.bytes.size(),
                        .offset = offset,
                        .of_code = 1,
                        .rights = protection_of(piece)});
    offset += piece.bytes.size();
  }
  plan_place_ = offset;
  for (const auto& [piece, copy] : variables_)
    map_shared(copy.get(), piece->bytes.size(), piece->address);
  map_shared(control_.get(), kControlBytes, control());
  for (const ThreadMemory& thread : threads_) {
    const auto* const stack = static_cast<const char*>(thread.stack.get()) + kPage;
    map_shared(stack, kStack, address_of(stack));
    map_shared(thread.local.get(), kPage, address_of(thread.local.get()));
  }
  for (const CellMapped& one : options_.mapped) {
    const char* const begin = memory_->base() + one.extent.offset;
    map_shared(begin, as_uint64(one.extent.bytes), address_of(begin), one.input.empty());
  }
}

Status CellLayout::write_code_file() {
  std::string bytes;
  for (const CellPiece& piece : image_.pieces)
    if (!piece.writable) bytes += piece.bytes;
  const CellPlan plan{.region_count = regions_.size(),
                      .enter = image_.code + cell_code().enter,
                      .entry = control(),
                      .stack = end_of_stack(0)};
  bytes.append(reinterpret_cast<const char*>(&plan), sizeof plan);
  bytes.append(reinterpret_cast<const char*>(regions_.data()),
               regions_.size() * sizeof(CellRegion));
  code_file_ = ::memfd_create("warploom-code", MFD_CLOEXEC);
  ssize_t written = -1;
  if (code_file_ >= 0) written = ::write(code_file_, bytes.data(), bytes.size());
  if (written == std::ssize(bytes)) return ok();
  return fail({ErrorCode::kOutOfMemory, "no memory for a candidate's code", "",
               fmt::format("{} bytes", bytes.size()), std::strerror(errno),
               "see whether memory is short"});
}

// What the cell's first thread is told, in the control page: with a filter of one instruction,
// which ends the process at any system call.
void CellLayout::write_entry() {
  auto* const page = static_cast<char*>(control_.get());
  const sock_filter end = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  const sock_fprog filter{1, reinterpret_cast<sock_filter*>(control() + kInstruction)};
  std::memcpy(page + kInstruction, &end, sizeof end);
  std::memcpy(page + kFilter, &filter, sizeof filter);
  auto* const stacks = reinterpret_cast<uint64_t*>(page + kStacks);
  for (int thread = 1; thread <= options_.threads; ++thread)
    stacks[thread - 1] = end_of_stack(thread);
  const std::vector<CellGap> given_back = gaps();
  std::memcpy(page + kGaps, given_back.data(), given_back.size() * sizeof(CellGap));
  const CellEntry entry{.gaps = reinterpret_cast<const CellGap*>(control() + kGaps),
                        .gap_count = std::ssize(given_back),
                        .threads = options_.threads,
                        .stacks = reinterpret_cast<const uint64_t*>(control() + kStacks),
                        .filter = reinterpret_cast<const void*>(control() + kFilter),
                        .filter_refused = -1};
  std::memcpy(page, &entry, sizeof entry);
}

// What lies between regions that are far apart, before the first and behind the last: this
// program's own memory is there.
std::vector<CellGap> CellLayout::gaps() const {
  constexpr uint64_t kFar = kCodeRoom;
  std::vector<CellRegion> sorted = regions_;
  std::ranges::sort(sorted, {}, &CellRegion::address);
  std::vector<CellGap> all;
  uint64_t at = 0;
  for (const CellRegion& region : sorted) {
    const bool far = at == 0 || (is_elsewhere() && region.address - at > kFar);
    if (far) all.push_back({at, region.address - at});
    at = region.address + region.bytes;
  }
  all.push_back({at, kTop - at});
  return all;
}

bool CellLayout::is_filtered() const {
  CellEntry entry{};
  std::memcpy(&entry, control_.get(), sizeof entry);
  return entry.filter_refused == 0;
}

// The kernel puts neighbours with the same rights on one line.
bool CellLayout::is_planned(const std::string& line) const {
  if (line.ends_with("[vsyscall]")) return true;
  char* end = nullptr;
  uint64_t at = std::strtoull(line.c_str(), &end, 16);
  if (*end != '-') return false;
  const uint64_t to = std::strtoull(end + 1, &end, 16);
  const std::string rights(end + 1, 4);
  while (at < to) {
    const auto holds = [&](const CellRegion& region) {
      const bool inside = region.address <= at && at < region.address + region.bytes;
      return inside && rights_of(region) == rights;
    };
    const auto region = std::ranges::find_if(regions_, holds);
    if (region == regions_.end()) return false;
    at = region->address + region->bytes;
  }
  return true;
}

void CellLayout::renew(uint64_t seed) {
  Random random(seed, "as new");
  garbage_ = Random(seed, "garbage");
  garbage_seed_ = garbage_.next();
  // By which a kernel's frame lies anywhere in a page; elsewhere it begins at no cache line's end.
  drop_ = is_elsewhere() ? 16 * garbage_.below(kPage / 16) : 64 * garbage_.below(kPage / 64);
  // What a stack's protector compares with is a program's, not a thread's; its lowest byte is 0.
  const uint64_t canary = garbage_.next() & ~uint64_t{0xff};
  std::memset(control_.get(), 0, kControlBytes);
  for (int thread = 0; thread <= options_.threads; ++thread) {
    const ThreadMemory& memory = threads_[as_size(thread)];
    char* const stack = static_cast<char*>(memory.stack.get()) + kPage;
    fill_pattern(stack, random, kStack);
    auto* const local = static_cast<char*>(memory.local.get());
    std::memset(local, 0, kPage);
    const uint64_t pointer = thread_pointer(thread);
    std::memcpy(local + CellImage::kThreadPointer, &pointer, sizeof pointer);
    std::memcpy(local + CellImage::kThreadPointer + CellImage::kCanary, &canary, sizeof canary);
  }
  for (const auto& [piece, copy] : variables_)
    std::memcpy(copy.get(), piece->bytes.data(), piece->bytes.size());
}

std::vector<CellLayout::Part> CellLayout::renewed() const {
  std::vector<Part> parts;
  for (const ThreadMemory& thread : threads_) {
    parts.push_back({static_cast<char*>(thread.stack.get()) + kPage, kStack});
    parts.push_back({static_cast<char*>(thread.local.get()), kPage});
  }
  for (const auto& [piece, copy] : variables_)
    parts.push_back({static_cast<char*>(copy.get()), piece->bytes.size()});
  return parts;
}

void CellLayout::keep() {
  const auto contents = [&] {
    std::vector<std::string> all;
    for (const Part& part : renewed())
      all.emplace_back(part.begin, part.bytes);
    return all;
  };
  kept_[kLeft] = contents();
  kept_drop_ = drop_;
  renew(options_.seed + 1);
  kept_[kNew] = contents();
}

void CellLayout::put_back(Kept kept) {
  const auto parts = renewed();
  drop_ = kept_drop_;
  for (size_t i = 0; i < parts.size(); ++i)
    std::memcpy(parts[i].begin, kept_[kept][i].data(), parts[i].bytes);
}

uint64_t CellLayout::function_of(const CellLaunch& launch) const {
  const CellCode code = cell_code();
  if (launch.function == CellLaunch::kFill) return image_.code + code.fill;
  if (launch.function < 0) return image_.code + code.nothing;
  return image_.kernels[as_size(launch.function)];
}

uint64_t CellLayout::step_buffers(size_t step) const {
  const auto* const control = static_cast<const CellControl*>(control_.get());
  const uint64_t steps = reinterpret_cast<uint64_t>(control->steps) - this->control();
  const auto* const first =
      reinterpret_cast<const CellStep*>(static_cast<const char*>(control_.get()) + steps);
  return reinterpret_cast<uint64_t>(first[step].buffers);
}

// What threads look at before a round: all buffers and scratch, as far as a core knows so many
// pages at once; and every line of a candidate's constants, so that none is nearer than others
// since a call before read it.
std::vector<CellSpan> CellLayout::spans() const {
  constexpr int64_t kMostKnown = int64_t{32} << 20;
  constexpr uint64_t kLine = 64;
  std::vector<CellSpan> all;
  int64_t bytes = 0;
  const auto add = [&](uint64_t begin, uint64_t size, uint64_t step) {
    all.push_back({reinterpret_cast<const unsigned char*>(begin), size, step});
  };
  for (const auto& [extent, input] : options_.mapped) {
    bytes += extent.bytes;
    add(address_of(memory_->base() + extent.offset), as_uint64(extent.bytes), kPage);
  }
  if (bytes > kMostKnown) all.clear();
  for (const CellPiece& piece : image_.pieces)
    if (piece.of_candidate && !piece.executable && !piece.writable)
      add(piece.address, piece.bytes.size(), kLine);
  return all;
}

// The lists of a round's buffers: behind all else, or, as any program might have them, at an odd
// place there or on the first thread's stack.
char* CellLayout::place_of_lists(char* behind, uint64_t bytes) {
  constexpr uint64_t kWord = sizeof(uint64_t);
  if (!is_elsewhere()) return behind;
  const bool fits = bytes + kWord <= kAbove;
  if (fits && garbage_.below(2) == 0) {
    char* const end = static_cast<char*>(threads_[1].stack.get()) + kPage + kStack;
    return end - kAbove + kWord * garbage_.below((kAbove - bytes) / kWord);
  }
  const char* const end = static_cast<char*>(control_.get()) + kControlBytes;
  const auto room = as_uint64(end - behind) - bytes;
  return behind + kWord * garbage_.below(room / kWord + 1);
}

// The control, words for registers, the spans and the steps behind it, the steps' buffers behind
// them.
Result<CellControl*> CellLayout::write_control(const Round& round) {
  const std::vector<CellSpan> looked_at = spans();
  const size_t fixed = sizeof(CellControl) + sizeof(CellWords) +
                       looked_at.size() * sizeof(CellSpan) +
                       round.launches.size() * sizeof(CellStep);
  size_t of_lists = 0;
  for (const CellLaunch& launch : round.launches)
    of_lists += launch.buffers.size() * sizeof(uint64_t);
  const size_t bytes = fixed + of_lists;
  if (bytes > kControlBytes)
    return fail({ErrorCode::kResourceLimit, "a launch list is too long", "",
                 fmt::format("{} bytes of launches and arguments", kControlBytes),
                 fmt::format("{} bytes", bytes), "launch fewer kernels"});
  auto* const page = static_cast<char*>(control_.get());
  std::memset(page, 0, kControlBytes);
  auto* const control = reinterpret_cast<CellControl*>(page);
  auto* const words = reinterpret_cast<CellWords*>(control + 1);
  // Some as long as numbers or offsets are, some as addresses.
  for (uint64_t& word : words->words)
    word = garbage_.next() >> garbage_.below(64);
  auto* const spans = reinterpret_cast<CellSpan*>(words + 1);
  std::ranges::copy(looked_at, spans);
  auto* const steps = reinterpret_cast<CellStep*>(spans + looked_at.size());
  auto* const behind = reinterpret_cast<char*>(steps + round.launches.size());
  auto* buffers = reinterpret_cast<uint64_t*>(place_of_lists(behind, of_lists));
  for (size_t i = 0; i < round.launches.size(); ++i) {
    const CellLaunch& launch = round.launches[i];
    std::ranges::copy(launch.buffers, buffers);
    const int64_t count = launch.end - launch.begin;
    steps[i] = {.function = reinterpret_cast<CpuKernel>(function_of(launch)),
                .buffers = reinterpret_cast<void* const*>(address_of(buffers)),
                .total = launch.blocks,
                .first = launch.first,
                .stride = launch.stride,
                .begin = launch.begin,
                .end = launch.end,
                .chunk = std::max<int64_t>(1, count / (8 * round.threads))};
    buffers += launch.buffers.size();
  }
  control->steps = reinterpret_cast<const CellStep*>(address_of(steps));
  control->step_count = std::ssize(round.launches);
  control->times = round.times;
  control->threads = round.threads;
  if (is_elsewhere()) control->words = reinterpret_cast<const CellWords*>(address_of(words));
  control->spans = reinterpret_cast<const CellSpan*>(address_of(spans));
  control->span_count = std::ssize(looked_at);
  return control;
}
}  // namespace warploom::verify
