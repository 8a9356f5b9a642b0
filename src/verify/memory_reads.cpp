#include "verify/memory_reads.h"
#include <Zydis/DecoderTypes.h>
#include <Zydis/MetaInfo.h>
#include <Zydis/Mnemonic.h>
#include <Zydis/Register.h>
#include <Zydis/SharedTypes.h>
#include <cpuid.h>
#include <sys/user.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "verify/disassembler.h"

namespace warploom::verify {
namespace {
constexpr uint64_t kDirection = 0x400;  // the flag by which string instructions go downwards
constexpr size_t kMostLanes = 64;

// What XSAVE writes: offsets of its parts, by their numbers; 0: this processor has none.
size_t part_of_state(unsigned int number) {
  unsigned int size = 0;
  unsigned int offset = 0;
  unsigned int c = 0;
  unsigned int d = 0;
  if (__get_cpuid_count(0xd, number, &size, &offset, &c, &d) == 0 || size == 0) return 0;
  return offset;
}

enum Part : unsigned int { kYmm = 2, kMasks = 5, kZmm = 6, kHighZmm = 7, kTileSizes = 17 };

// What LDTILECFG said of a tile.
struct TileSize {
  uint8_t first_row = 0;
  uint8_t rows = 0;
  uint16_t row_bytes = 0;
};

// Registers of vectors and masks, as one state has them.
class Vectors {
 public:
  explicit Vectors(std::vector<char> state) : state_(std::move(state)) {}

  uint64_t mask(int number) const {
    uint64_t bits = 0;
    copy(part_of_state(kMasks), as_size(number) * sizeof bits, &bits, sizeof bits);
    return bits;
  }

  // All 64 bytes, of which a shorter register is the first.
  std::array<char, 64> vector(int number) const {
    constexpr size_t kXmm = 160;
    std::array<char, 64> out{};
    if (number >= 16) {
      copy(part_of_state(kHighZmm), as_size(number - 16) * 64, out.data(), 64);
      return out;
    }
    const auto n = as_size(number);
    copy(kXmm, n * 16, out.data(), 16);
    copy(part_of_state(kYmm), n * 16, out.data() + 16, 16);
    copy(part_of_state(kZmm), n * 32, out.data() + 32, 32);
    return out;
  }

  TileSize tile(int number) const {
    constexpr size_t kRowBytes = 16;
    constexpr size_t kRows = 48;
    const auto n = as_size(number);
    TileSize out;
    copy(part_of_state(kTileSizes), 1, &out.first_row, 1);
    copy(part_of_state(kTileSizes), kRowBytes + 2 * n, &out.row_bytes, 2);
    copy(part_of_state(kTileSizes), kRows + n, &out.rows, 1);
    return out;
  }

 private:
  void copy(size_t part, size_t at, void* to, size_t bytes) const {
    if (part != 0 && part + at + bytes <= state_.size())
      std::memcpy(to, state_.data() + part + at, bytes);
  }

  std::vector<char> state_;
};

// Of xmm7, ymm7 and zmm7 the 7.
int number_of(ZydisRegister which) {
  for (const ZydisRegister first : {ZYDIS_REGISTER_XMM0, ZYDIS_REGISTER_YMM0, ZYDIS_REGISTER_ZMM0})
    if (which >= first && which < first + 32) return which - first;
  return 0;
}

int bytes_of(ZydisRegister which) {
  if (which >= ZYDIS_REGISTER_ZMM0) return 64;
  return which >= ZYDIS_REGISTER_YMM0 ? 32 : 16;
}

bool is_vector(ZydisRegister which) {
  return which >= ZYDIS_REGISTER_XMM0 && which <= ZYDIS_REGISTER_ZMM31;
}

uint64_t shifted(uint64_t address, int64_t by) {
  return address + as_uint64(by);
}

// The sign bits of a vector's lanes: what AVX masks by.
uint64_t signs_of(const std::array<char, 64>& vector, size_t lane, size_t count) {
  uint64_t bits = 0;
  for (size_t i = 0; i < count && (i + 1) * lane <= vector.size(); ++i)
    if ((vector[(i + 1) * lane - 1] & 0x80) != 0) bits |= uint64_t{1} << i;
  return bits;
}

// The register operand by which AVX leaves lanes out: of vmaskmovps the second operand, of a gather
// the third.
const ZydisDecodedOperand* sign_mask(const WholeInstruction& one, size_t place) {
  if (one.head.encoding != ZYDIS_INSTRUCTION_ENCODING_VEX) return nullptr;
  const auto operands = one.operands();
  if (operands.size() <= place || operands[place].type != ZYDIS_OPERAND_TYPE_REGISTER)
    return nullptr;
  return is_vector(operands[place].reg.value) ? &operands[place] : nullptr;
}

bool is_masked_by_signs(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_VMASKMOVPS || mnemonic == ZYDIS_MNEMONIC_VMASKMOVPD ||
         mnemonic == ZYDIS_MNEMONIC_VPMASKMOVD || mnemonic == ZYDIS_MNEMONIC_VPMASKMOVQ;
}

bool packs_what_it_reads(ZydisMnemonic mnemonic) {
  constexpr std::array kAll = {ZYDIS_MNEMONIC_VEXPANDPS, ZYDIS_MNEMONIC_VEXPANDPD,
                               ZYDIS_MNEMONIC_VPEXPANDB, ZYDIS_MNEMONIC_VPEXPANDW,
                               ZYDIS_MNEMONIC_VPEXPANDD, ZYDIS_MNEMONIC_VPEXPANDQ};
  return std::ranges::find(kAll, mnemonic) != kAll.end();
}

bool is_masked(const ZydisDecodedInstruction& head) {
  return head.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX &&
         head.avx.mask.reg > ZYDIS_REGISTER_K0 && head.avx.mask.reg <= ZYDIS_REGISTER_K7;
}

uint64_t lowest(size_t count) {
  return count >= kMostLanes ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

// From the first lane that is read to the last.
MemoryRead lanes_read(uint64_t address, size_t lane, uint64_t mask) {
  if (mask == 0) return {};
  const auto first = as_size(std::countr_zero(mask));
  const auto last = as_size(63 - std::countl_zero(mask));
  return {address + first * lane, (last - first + 1) * lane, true};
}

MemoryRead by_mask(const WholeInstruction& one, const ZydisDecodedOperand& operand, uint64_t at,
                   const Vectors& vectors) {
  const size_t lane = std::max<size_t>(1, operand.element_size / 8);
  const size_t count = std::max<size_t>(1, operand.size / 8 / lane);
  uint64_t mask = 0;
  if (is_masked_by_signs(one.head.mnemonic)) {
    const ZydisDecodedOperand* const by = sign_mask(one, 1);
    const bool wide = one.head.mnemonic == ZYDIS_MNEMONIC_VMASKMOVPD ||
                      one.head.mnemonic == ZYDIS_MNEMONIC_VPMASKMOVQ;
    const size_t own = wide ? 8 : 4;
    if (by) mask = signs_of(vectors.vector(number_of(by->reg.value)), own, operand.size / 8 / own);
    return lanes_read(at, own, mask);
  }
  mask = vectors.mask(one.head.avx.mask.reg - ZYDIS_REGISTER_K0) & lowest(count);
  if (packs_what_it_reads(one.head.mnemonic)) mask = lowest(as_size(std::popcount(mask)));
  return lanes_read(at, lane, mask);
}

// One by one: a gather's lanes lie anywhere.
void add_gathered(const WholeInstruction& one, const ZydisDecodedOperand& operand, uint64_t base,
                  const Vectors& vectors, std::vector<MemoryRead>& out) {
  const ZydisMnemonic mnemonic = one.head.mnemonic;
  const bool long_index =
      mnemonic == ZYDIS_MNEMONIC_VGATHERQPS || mnemonic == ZYDIS_MNEMONIC_VGATHERQPD ||
      mnemonic == ZYDIS_MNEMONIC_VPGATHERQD || mnemonic == ZYDIS_MNEMONIC_VPGATHERQQ;
  const bool long_lane =
      mnemonic == ZYDIS_MNEMONIC_VGATHERDPD || mnemonic == ZYDIS_MNEMONIC_VGATHERQPD ||
      mnemonic == ZYDIS_MNEMONIC_VPGATHERDQ || mnemonic == ZYDIS_MNEMONIC_VPGATHERQQ;
  const size_t lane = long_lane ? 8 : 4;
  const size_t index_bytes = long_index ? 8 : 4;
  const ZydisRegister to = one.operands()[0].reg.value;
  const size_t count =
      std::min(as_size(bytes_of(to)) / lane, as_size(bytes_of(operand.mem.index)) / index_bytes);
  uint64_t mask = lowest(count);
  if (is_masked(one.head))
    mask &= vectors.mask(one.head.avx.mask.reg - ZYDIS_REGISTER_K0);
  else if (const ZydisDecodedOperand* const by = sign_mask(one, 2))
    mask &= signs_of(vectors.vector(number_of(by->reg.value)), lane, count);
  const std::array<char, 64> indices = vectors.vector(number_of(operand.mem.index));
  for (size_t i = 0; i < count; ++i) {
    if ((mask >> i & 1) == 0) continue;
    int64_t index = 0;
    int32_t narrow = 0;
    std::memcpy(&index, indices.data() + i * index_bytes, index_bytes);
    std::memcpy(&narrow, indices.data() + i * index_bytes, sizeof narrow);
    if (!long_index) index = narrow;
    out.push_back({shifted(base, index * operand.mem.scale), lane, true});
  }
}

bool loads_a_tile(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_TILELOADD || mnemonic == ZYDIS_MNEMONIC_TILELOADDT1;
}

// Row by row: the index register says how far apart they are. `second`: the address with what the
// index adds, which is the second row's.
void add_rows_of_tile(const WholeInstruction& one, const ZydisDecodedOperand& operand,
                      uint64_t second, const ThreadState& state, std::vector<MemoryRead>& out) {
  const auto& place = operand.mem;
  const uint64_t apart = value_of(place.index, state.registers, 0) * place.scale;
  const TileSize size =
      Vectors(state.vectors()).tile(one.operands()[0].reg.value - ZYDIS_REGISTER_TMM0);
  for (uint64_t row = size.first_row; row < size.rows; ++row)
    out.push_back({second + (row - 1) * apart, size.row_bytes, true});
}

// Of a string instruction that repeats all of its elements.
MemoryRead of_string(const WholeInstruction& one, MemoryRead first, const user_regs_struct& all) {
  constexpr ZydisInstructionAttributes kRepeats =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  if ((one.head.attributes & kRepeats) == 0) return first;
  const uint64_t count = all.rcx;
  if (count == 0) return {};
  const uint64_t element = first.bytes;
  if ((all.eflags & kDirection) != 0) first.address -= (count - 1) * element;
  first.bytes = count * element;
  return first;
}

// bt and its kin reach any bit from where their operand begins.
int64_t offset_of_bit(const WholeInstruction& one, const ZydisDecodedOperand& operand,
                      const user_regs_struct& all) {
  constexpr std::array kBits = {ZYDIS_MNEMONIC_BT, ZYDIS_MNEMONIC_BTS, ZYDIS_MNEMONIC_BTR,
                                ZYDIS_MNEMONIC_BTC};
  const auto operands = one.operands();
  if (std::ranges::find(kBits, one.head.mnemonic) == kBits.end() || operands.size() < 2 ||
      operands[1].type != ZYDIS_OPERAND_TYPE_REGISTER || operand.size == 0)
    return 0;
  const uint64_t raw = value_of(operands[1].reg.value, all, 0);
  const int64_t bit = operand.size == 64 ? as_int64(raw) : static_cast<int32_t>(as_uint32(raw));
  const int64_t size = operand.size;
  const int64_t word = bit >= 0 ? bit / size : -((-bit + size - 1) / size);
  return word * size / 8;
}

bool reads_no_memory(const ZydisDecodedInstruction& head) {
  return head.meta.category == ZYDIS_CATEGORY_PREFETCH ||
         head.meta.category == ZYDIS_CATEGORY_NOP || head.meta.category == ZYDIS_CATEGORY_WIDENOP ||
         head.meta.category == ZYDIS_CATEGORY_PREFETCHWT1 || head.mnemonic == ZYDIS_MNEMONIC_NOP;
}
}  // namespace

uint64_t value_of(ZydisRegister which, const user_regs_struct& all, uint64_t next) {
  const std::array<uint64_t, 16> general = {all.rax, all.rcx, all.rdx, all.rbx, all.rsp, all.rbp,
                                            all.rsi, all.rdi, all.r8,  all.r9,  all.r10, all.r11,
                                            all.r12, all.r13, all.r14, all.r15};
  if (which == ZYDIS_REGISTER_RIP) return next;
  if (which == ZYDIS_REGISTER_EIP) return as_uint32(next);
  if (which >= ZYDIS_REGISTER_RAX && which <= ZYDIS_REGISTER_R15)
    return general[as_size(which - ZYDIS_REGISTER_RAX)];
  if (which >= ZYDIS_REGISTER_EAX && which <= ZYDIS_REGISTER_R15D)
    return as_uint32(general[as_size(which - ZYDIS_REGISTER_EAX)]);
  if (which == ZYDIS_REGISTER_AL) return all.rax & 0xff;
  if (which >= ZYDIS_REGISTER_AX && which <= ZYDIS_REGISTER_R15W)
    return as_uint64(static_cast<int16_t>(general[as_size(which - ZYDIS_REGISTER_AX)]));
  return 0;
}

uint64_t address_of(const WholeInstruction& one, const ZydisDecodedOperand& operand,
                    const user_regs_struct& all) {
  const uint64_t next = all.rip + one.head.length;
  const auto& place = operand.mem;
  uint64_t address = value_of(place.base, all, next);
  if (!is_vector(place.index))
    address += value_of(place.index, all, next) * std::max<uint64_t>(1, place.scale);
  if (place.disp.has_displacement) address += as_uint64(place.disp.value);
  if (one.head.address_width == 32) address = as_uint32(address);
  if (place.segment == ZYDIS_REGISTER_FS) address += all.fs_base;
  return address;
}

std::vector<MemoryRead> memory_reads(const WholeInstruction& one, const ThreadState& state) {
  std::vector<MemoryRead> all;
  const user_regs_struct& registers = state.registers;
  if (reads_no_memory(one.head)) return all;
  if (one.head.mnemonic == ZYDIS_MNEMONIC_LEAVE) return {{registers.rbp, 8, false}};
  const bool masked = is_masked(one.head) || is_masked_by_signs(one.head.mnemonic);
  for (const ZydisDecodedOperand& operand : one.operands()) {
    const bool reads = operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
                       (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    if (!reads || operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) continue;
    const uint64_t at = address_of(one, operand, registers);
    if (operand.mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
      add_gathered(one, operand, at, Vectors(state.vectors()), all);
      continue;
    }
    if (loads_a_tile(one.head.mnemonic)) {
      add_rows_of_tile(one, operand, at, state, all);
      continue;
    }
    const bool repeated = one.head.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID;
    const uint64_t bits = repeated ? operand.element_size : operand.size;
    const uint64_t bytes = std::max<uint64_t>(1, bits / 8);
    MemoryRead read{shifted(at, offset_of_bit(one, operand, registers)), bytes, bytes >= 16};
    if (masked && !repeated) read = by_mask(one, operand, at, Vectors(state.vectors()));
    if (one.head.meta.category == ZYDIS_CATEGORY_STRINGOP) read = of_string(one, read, registers);
    if (read.bytes > 0) all.push_back(read);
  }
  return all;
}
}  // namespace warploom::verify
