#include "base/random.h"
#include <numbers>
#include "base/hash.h"

namespace warploom {

Random::Random(std::uint64_t seed, std::string_view name) : state_(seed ^ hash64(name)) { next(); }

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace warploom
