// What the rows of input_families.def say of families as such.
#include <array>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "verify/inputs.h"

namespace warploom::verify {
namespace {
struct FamilyRow {
  std::string_view name;
  bool wide;
};

constexpr std::array kFamilies = {
#define WARPLOOM_INPUT_FAMILY(name, shape, shift, scale, wide) FamilyRow{#name, wide},
#include "verify/input_families.def"
};
}  // namespace

std::string_view name_of(InputFamily family) {
  return kFamilies[as_size(family)].name;
}

const std::vector<InputFamily>& input_families() {
  static const std::vector<InputFamily> all = {
#define WARPLOOM_INPUT_FAMILY(name, ...) InputFamily::name,
#include "verify/input_families.def"
  };
  return all;
}

bool is_wide(InputFamily family) {
  return kFamilies[as_size(family)].wide;
}
}  // namespace warploom::verify
