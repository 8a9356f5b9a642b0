// What the two wgmma families have in common: how a config becomes programs, and what they offer
// alike.
//
// A config's programs are those that prepare operands, the product's kernel, and for split_k one
// that adds the parts:   prepare_a?  prepare_b?  matmul  sum_parts?
#pragma once
#include <algorithm>
#include <optional>
#include "kernels/pieces/wgmma_product.h"
#include "kernels/pieces/window_order.h"

namespace warploom::kernels {
class WgmmaFamily : public Family {
 public:
  WgmmaFamily(const ConfigType& type, WgmmaProduct product);

  Result<Programs> programs(const KernelConfig& config) const override;

 protected:
  virtual WgmmaChoices choices_of(const KernelConfig& config) const = 0;

  // An operand as the kernel reads it, made ready by programs of its own where it has to be; `is_a`
  // before the sides were exchanged.
  virtual Prepared prepared(Programs& out, const Contraction& sides, bool first, bool is_a,
                            const WgmmaChoices& s) const = 0;

  // Values that both offer.
  Values split_values() const;
  static Values schedulers(const Values& splits);
  Values epilogues() const;
  Values depths_of_scales() const;  // whole runs of k where scales change along it

  WgmmaProduct product_;

 private:
  void split(Programs& out, const Contraction& sides, const Prepared& a, const Prepared& b,
             const WgmmaChoices& s) const;
};

// A value at the end of a list that has it not yet.
inline void once(Values& values, int64_t value) {
  if (std::ranges::count(values, value) == 0) values.push_back(value);
}

// What wgmma multiplies in a region, where every tensor is stored whole.
std::optional<Contraction> wgmma_contraction_of(const Region& region,
                                                const Capabilities& capabilities);

// Whether a sum runs over several axes, or columns of an operand lie apart: what window order is
// for.
bool wants_windows(const Contraction& contraction);
}  // namespace warploom::kernels
