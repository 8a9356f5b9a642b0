#include "verify/read_watch.h"
#include <Zydis/DecoderTypes.h>
#include <Zydis/MetaInfo.h>
#include <Zydis/SharedTypes.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/user.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "verify/cell_code.h"
#include "verify/cell_image.h"
#include "verify/disassembler.h"
#include "verify/memory_reads.h"
#include "verify/traced.h"

namespace warploom::verify {
namespace {
constexpr char kTrap = '\xcc';
constexpr uint64_t kWord = sizeof(uint64_t);
constexpr uint64_t kRedZone = 128;  // below the stack pointer that is a function's own (psABI)

bool goes_where_it_computed(const WholeInstruction& one) {
  const ZydisInstructionCategory category = one.head.meta.category;
  if (category == ZYDIS_CATEGORY_RET) return true;
  const bool leaves = category == ZYDIS_CATEGORY_CALL || category == ZYDIS_CATEGORY_UNCOND_BR;
  return leaves && !one.operands().empty() &&
         one.operands()[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

bool may_read_memory(const WholeInstruction& one) {
  return std::ranges::any_of(one.operands(), [](const ZydisDecodedOperand& operand) {
    return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
           (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  });
}

bool holds(const Readable& place, uint64_t address) {
  return place.begin <= address && address < place.end;
}

bool holds_all(const Readable& place, const MemoryRead& read) {
  return place.begin <= read.address && read.address <= place.end &&
         read.bytes <= place.end - read.address;
}

bool holds_some(const Readable& place, const MemoryRead& read) {
  return read.address < place.end && read.address + read.bytes > place.begin;
}
}  // namespace

ReadWatch::ReadWatch(const TracedThread& thread, const CellImage& image,
                     std::vector<Readable> readable, Readable stack, bool every,
                     const Disassembler& zydis)
    : thread_(thread),
      image_(image),
      zydis_(zydis),
      readable_(std::move(readable)),
      stack_(std::move(stack)),
      looks_(every ? static_cast<int>(kFirstStops) : kLooks) {
  for (const CellPiece& piece : image.pieces) {
    if (piece.of_candidate && !piece.executable)
      readable_.push_back({piece.address, piece.address + piece.bytes.size(), "its constants"});
  }
  for (const CellCodeSection& section : image.sections)
    find_points(section);
  for (const uint64_t kernel : image.kernels)
    points_[kernel].begins = true;
  add_copies(image);
}

// Of the gate's image every byte of a section belongs to an instruction.
void ReadWatch::find_points(const CellCodeSection& section) {
  Code code{section.address, section.bytes, std::vector<bool>(section.bytes.size())};
  WholeInstruction one;
  const std::string_view bytes = section.bytes;
  for (size_t at = 0; at < bytes.size() && zydis_.decode(bytes.substr(at), one);
       at += one.head.length) {
    code.starts[at] = true;
    if (may_read_memory(one) || goes_where_it_computed(one)) points_.try_emplace(code.begin + at);
  }
  code_.push_back(std::move(code));
}

void ReadWatch::add_copies(const CellImage& image) {
  const CellCode ours = cell_code();
  points_[image.code + ours.memcpy].arguments = 1;
  points_[image.code + ours.memmove].arguments = 1;
  points_[image.code + ours.memcmp].arguments = 2;
}

const ReadWatch::Code* ReadWatch::code_at(uint64_t address) const {
  for (const Code& code : code_)
    if (code.begin <= address && address < code.begin + code.bytes.size()) return &code;
  return nullptr;
}

bool ReadWatch::put_byte(uint64_t address, char byte) const {
  const uint64_t place = address / kWord * kWord;
  const auto word = thread_.word_at(place);
  if (!word) return false;
  uint64_t changed = *word;
  std::memcpy(reinterpret_cast<char*>(&changed) + (address - place), &byte, 1);
  return thread_.put_word(place, changed);
}

bool ReadWatch::plant() {
  bool planted = true;
  for (auto& [address, point] : points_) {
    if (!point.armed) point.armed = put_byte(address, kTrap);
    point.left = looks_;
    planted &= point.armed;
  }
  return planted;
}

void ReadWatch::plant_again() {
  if (stops_ >= kFirstStops) looks_ = kLooks;
  most_stops_ = std::max(most_stops_, stops_ + kMoreStops);
  plant();
}

// The trap is put on again behind it.
std::optional<Stop> ReadWatch::step_over(uint64_t at, Point& point) {
  Stop stop;
  do {
    if (!thread_.step()) return Stop{.gone = true, .signal = SIGKILL};
    stop = thread_.await();
  } while (!stop.gone && stop.event == 0 && stop.signal == SIGSTOP);
  if (!stop.by_trap()) return stop;
  point.armed = put_byte(at, kTrap);
  return std::nullopt;
}

ReadLook ReadWatch::look() {
  auto all = thread_.registers();
  if (!all) return {};
  const uint64_t at = all->rip - 1;  // int3 is one byte
  const auto found = points_.find(at);
  if (found == points_.end() || !found->second.armed) return {};
  Point& point = found->second;
  const bool goes_on = ++stops_ < most_stops_;
  if (point.begins && goes_on) plant();
  seen_ += !point.seen;
  point.seen = true;
  point.armed = false;
  const Code* const code = code_at(at);
  const std::string_view own(reinterpret_cast<const char*>(cell_code().bytes), cell_code().size);
  put_byte(at, code ? code->bytes[at - code->begin] : own[at - image_.code]);
  all->rip = at;
  thread_.set_registers(*all);
  if (entered_at_ == 0) {
    entered_at_ = all->rsp;
    returns_to_ = thread_.word_at(all->rsp).value_or(0);
  }
  const auto fault = point.arguments > 0 ? fault_of_copy(point, *all) : fault_of(at, *all);
  if (fault) return {.finding = ReadFinding{at, *fault}};
  if (--point.left > 0 && goes_on) return {.ended = step_over(at, point)};
  return {};
}

std::optional<std::string> ReadWatch::fault_of_copy(const Point& point,
                                                    const user_regs_struct& all) const {
  const MemoryRead from{all.rsi, all.rdx, false};
  if (!may_read(from, all)) return named(from) + ", by a copy";
  const MemoryRead to{all.rdi, all.rdx, false};
  if (point.arguments > 1 && !may_read(to, all)) return named(to) + ", by a comparison";
  return std::nullopt;
}

std::optional<std::string> ReadWatch::fault_of(uint64_t at, const user_regs_struct& all) const {
  const Code* const code = code_at(at);
  WholeInstruction one;
  if (!code || !zydis_.decode(std::string_view(code->bytes).substr(at - code->begin), one))
    return std::nullopt;
  if (goes_where_it_computed(one))
    if (auto fault = fault_of_target(one, all)) return fault;
  const bool returns = one.head.meta.category == ZYDIS_CATEGORY_RET && all.rsp == entered_at_;
  if (returns) return std::nullopt;
  const ThreadState state{all, [this] { return thread_.vectors(); }};
  for (const MemoryRead& read : memory_reads(one, state))
    if (!may_read(read, all)) return named(read);
  return std::nullopt;
}

std::optional<std::string> ReadWatch::fault_of_target(const WholeInstruction& one,
                                                      const user_regs_struct& all) const {
  std::optional<uint64_t> target;
  if (one.head.meta.category == ZYDIS_CATEGORY_RET) {
    target = thread_.word_at(all.rsp);
    if (all.rsp == entered_at_ && target == returns_to_) return std::nullopt;
  } else if (one.operands()[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
    target = value_of(one.operands()[0].reg.value, all, 0);
  } else {
    target = thread_.word_at(address_of(one, one.operands()[0], all));
  }
  if (!target || may_go_to(*target)) return std::nullopt;
  return fmt::format(
      "a branch to {:#x}, where no instruction of its own begins and no function "
      "that it may call",
      *target);
}

bool ReadWatch::may_go_to(uint64_t address) const {
  const Code* const code = code_at(address);
  if (code) return code->starts[address - code->begin];
  return image_.functions.contains(address);
}

bool ReadWatch::may_read(const MemoryRead& read, const user_regs_struct& all) const {
  if (read.bytes == 0) return true;
  // What a stack's protector compares with; the gate lets no other through.
  constexpr uint64_t kProtector = 0x28;
  if (read.address == all.fs_base + kProtector && read.bytes <= kWord) return true;
  const auto is_in = [&](const Readable& place) {
    return holds_all(place, read) || (read.of_vector && holds_some(place, read));
  };
  if (std::ranges::any_of(readable_, is_in)) return true;
  if (!holds(stack_, all.rsp)) return false;
  const uint64_t lowest = std::max<uint64_t>(stack_.begin, all.rsp - kRedZone);
  // Its return address among it: a function that aligns its stack copies that.
  return holds_all({lowest, entered_at_ + kWord, ""}, read);
}

std::string ReadWatch::named(const MemoryRead& read) const {
  const std::string size = fmt::format("{} bytes", read.bytes);
  for (const CellPiece& piece : image_.pieces) {
    if (read.address < piece.address || read.address >= piece.address + piece.bytes.size())
      continue;
    if (piece.of_candidate) return size + " of its own instructions";
    return size + (piece.executable ? " of code that is not its own" : " of the mathematics'");
  }
  if (holds(stack_, read.address))
    return size +
           (read.address >= entered_at_ ? " above its stack" : " of the stack below what it uses");
  // Of one that begins within, but is longer: 0.
  const auto distance = [&](const Readable& place) -> uint64_t {
    if (read.address >= place.end) return read.address - place.end;
    return read.address < place.begin ? place.begin - read.address : 0;
  };
  const auto nearest = std::ranges::min_element(
      readable_, [&](const Readable& a, const Readable& b) { return distance(a) < distance(b); });
  if (nearest == readable_.end()) return size;
  const bool behind = read.address >= nearest->end;
  return fmt::format("{}, {} {} {}", size, distance(*nearest), behind ? "behind" : "in front of",
                     nearest->name);
}
}  // namespace warploom::verify
