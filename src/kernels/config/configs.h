// The families' configs, a struct each, made of the tables beside this file, and the kinds that
// their fields choose among.
#pragma once
#include <span>
#include "kernels/config/kernel_config.h"

namespace warploom::kernels {
// Which CTA computes what of a matmul.
enum class Scheduler : uint8_t { data_parallel, split_k, stream_k };
inline constexpr std::string_view kSchedulers[] = {"data_parallel", "split_k", "stream_k"};
template <> inline constexpr Words kWords<Scheduler> = kSchedulers;

// How results leave: from registers, or through shared memory.
enum class Epilogue : uint8_t { direct, smem };
inline constexpr std::string_view kEpilogues[] = {"direct", "smem"};
template <> inline constexpr Words kWords<Epilogue> = kEpilogues;

// What wgmma reads its first operand from.
enum class OperandSource : uint8_t { smem, registers };
inline constexpr std::string_view kOperandSources[] = {"smem", "registers"};
template <> inline constexpr Words kWords<OperandSource> = kOperandSources;

// How products of fp32 numbers are computed where no instruction has them.
enum class Emulation : uint8_t { none, tf32x3, fp16x3 };
inline constexpr std::string_view kEmulations[] = {"none", "tf32x3", "fp16x3"};
template <> inline constexpr Words kWords<Emulation> = kEmulations;

// Where a row stays between passes over it.
enum class RowResidency : uint8_t { registers, smem, reread, circular_buffer };
inline constexpr std::string_view kRowResidencies[] = {"registers", "smem", "reread",
                                                       "circular_buffer"};
template <> inline constexpr Words kWords<RowResidency> = kRowResidencies;

// Who copies an operand of a product on a CPU before it is multiplied: nobody, it is read where it
// lies; each task the part that it needs; or a program of its own, all cores together.
enum class PackedBy : uint8_t { nobody, task, program };
inline constexpr std::string_view kPackers[] = {"nobody", "task", "program"};
template <> inline constexpr Words kWords<PackedBy> = kPackers;

// What a CPU's main loop multiplies with: one fused multiply-add an element; dot products of
// neighbours along k, of two 16-bit floats at once; or tiles of 16 rows and 16 columns of sums.
enum class CpuInstruction : uint8_t { fma, dot, tile };
inline constexpr std::string_view kCpuInstructions[] = {"fma", "dot", "tile"};
template <> inline constexpr Words kWords<CpuInstruction> = kCpuInstructions;

#define CONFIG_NAME MatmulWgmmaConfig
#define CONFIG_TABLE "kernels/config/matmul_wgmma.def"
#include "kernels/config/define_struct.inc"

#define CONFIG_NAME ConvWgmmaConfig
#define CONFIG_TABLE "kernels/config/conv_wgmma.def"
#include "kernels/config/define_struct.inc"

#define CONFIG_NAME Im2winConfig
#define CONFIG_TABLE "kernels/config/im2win.def"
#include "kernels/config/define_struct.inc"

#define CONFIG_NAME ConvCpuConfig
#define CONFIG_TABLE "kernels/config/conv_cpu.def"
#include "kernels/config/define_struct.inc"

#define CONFIG_NAME MatmulMmaConfig
#define CONFIG_TABLE "kernels/config/matmul_threads.def"
#include "kernels/config/define_struct.inc"

#define CONFIG_NAME MatmulSimtConfig
#define CONFIG_TABLE "kernels/config/matmul_threads.def"
#include "kernels/config/define_struct.inc"

#define CONFIG_NAME MatmulCpuConfig
#define CONFIG_TABLE "kernels/config/matmul_cpu.def"
#include "kernels/config/define_struct.inc"

#define CONFIG_NAME RowwiseConfig
#define CONFIG_TABLE "kernels/config/rowwise.def"
#include "kernels/config/define_struct.inc"

#define CONFIG_NAME CpuRowwiseConfig
#define CONFIG_TABLE "kernels/config/cpu_rowwise.def"
#include "kernels/config/define_struct.inc"

#define CONFIG_NAME DirectConfig
#define CONFIG_TABLE "kernels/config/direct.def"
#include "kernels/config/define_struct.inc"

#define CONFIG_NAME WrittenConfig
#define CONFIG_TABLE "kernels/config/written.def"
#include "kernels/config/define_struct.inc"

// Those above, and the one of a family's name; null where there is none.
std::span<const ConfigType* const> config_types();
const ConfigType* config_type(std::string_view family);
}  // namespace warploom::kernels
