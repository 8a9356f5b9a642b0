#include "kernels/config/configs.h"
#include <algorithm>
#include <span>
#include <string_view>
#include "kernels/config/kernel_config.h"

namespace warploom::kernels {
#define CONFIG_NAME MatmulWgmmaConfig
#define CONFIG_FAMILY "matmul_wgmma"
#define CONFIG_TABLE "kernels/config/matmul_wgmma.def"
#include "kernels/config/define_type.inc"

#define CONFIG_NAME ConvWgmmaConfig
#define CONFIG_FAMILY "conv_wgmma"
#define CONFIG_TABLE "kernels/config/conv_wgmma.def"
#include "kernels/config/define_type.inc"

#define CONFIG_NAME Im2winConfig
#define CONFIG_FAMILY "im2win"
#define CONFIG_TABLE "kernels/config/im2win.def"
#include "kernels/config/define_type.inc"

#define CONFIG_NAME ConvCpuConfig
#define CONFIG_FAMILY "conv_cpu"
#define CONFIG_TABLE "kernels/config/conv_cpu.def"
#include "kernels/config/define_type.inc"

#define CONFIG_NAME MatmulMmaConfig
#define CONFIG_FAMILY "matmul_mma"
#define CONFIG_TABLE "kernels/config/matmul_threads.def"
#include "kernels/config/define_type.inc"

#define CONFIG_NAME MatmulSimtConfig
#define CONFIG_FAMILY "matmul_simt"
#define CONFIG_TABLE "kernels/config/matmul_threads.def"
#include "kernels/config/define_type.inc"

#define CONFIG_NAME MatmulCpuConfig
#define CONFIG_FAMILY "matmul_cpu"
#define CONFIG_TABLE "kernels/config/matmul_cpu.def"
#include "kernels/config/define_type.inc"

#define CONFIG_NAME RowwiseConfig
#define CONFIG_FAMILY "rowwise"
#define CONFIG_TABLE "kernels/config/rowwise.def"
#include "kernels/config/define_type.inc"

#define CONFIG_NAME CpuRowwiseConfig
#define CONFIG_FAMILY "cpu_rowwise"
#define CONFIG_TABLE "kernels/config/cpu_rowwise.def"
#include "kernels/config/define_type.inc"

#define CONFIG_NAME DirectConfig
#define CONFIG_FAMILY "direct"
#define CONFIG_TABLE "kernels/config/direct.def"
#include "kernels/config/define_type.inc"

#define CONFIG_NAME WrittenConfig
#define CONFIG_FAMILY "written"
#define CONFIG_TABLE "kernels/config/written.def"
#include "kernels/config/define_type.inc"

std::span<const ConfigType* const> config_types() {
  static const ConfigType* const kTypes[] = {
      &MatmulWgmmaConfig::type(), &ConvWgmmaConfig::type(),  &Im2winConfig::type(),
      &MatmulMmaConfig::type(),   &MatmulSimtConfig::type(), &MatmulCpuConfig::type(),
      &ConvCpuConfig::type(),     &RowwiseConfig::type(),    &CpuRowwiseConfig::type(),
      &DirectConfig::type(),      &WrittenConfig::type()};
  return kTypes;
}

const ConfigType* config_type(std::string_view family) {
  const auto all = config_types();
  const auto found = std::ranges::find(all, family, &ConfigType::family);
  return found == all.end() ? nullptr : *found;
}
}  // namespace warploom::kernels
