// Reading configs: of today's texts and JSON, and of those that earlier versions wrote.
//
// A text is first taken as it is written, a family and words for its fields; what an earlier
// version wrote is then brought to today's shape by one function (migrated), names by the tables'
// aliases; and then a family's table makes a config of it.
//
//   "matmul_wgmma block_m=128 … consumers=2 split=1 stream=1 exchange=0"
//      is   matmul_wgmma block_m=128 … num_math_warpgroups=2 split_k=1 scheduler=stream_k swap_ab=0
//   "matmul_wgmma block_m=64 … y=4"
//      is   conv_wgmma block_m=64 … tile_p=4
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include "base/error.h"
#include "kernels/config/configs.h"

namespace warploom::kernels {
// As it is written: numbers or words.
struct RawConfig {
  std::string family;
  std::map<std::string, std::string> fields;
};

// Of the text of a person, an archive or a plan, migrated. plan-invalid with the word that cannot
// be read.
Result<RawConfig> read_raw(const std::string& text);
Result<RawConfig> read_raw(const nlohmann::json& json);

// What earlier versions wrote in another shape:
//   split and stream      one scheduler
//   halves                fp32_emulation
//   matmul_wgmma with y   the family conv_wgmma
//   matmul_simt's split   gone: parts of k are no choice of it any more
// All else is left as it is.
RawConfig migrated(RawConfig raw);

// By a family's table. schedule-illegal: a field is missing or unknown; plan-invalid: a field's
// word is none of its own.
Result<KernelConfig> config_of(const RawConfig& raw, const ConfigType& type);

// Both, of a family of this program: no-schedule where there is none of that name.
Result<KernelConfig> config_from_text(const std::string& text);
Result<KernelConfig> config_from_json(const nlohmann::json& json);
}  // namespace warploom::kernels
