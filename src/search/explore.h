// The search itself, for any catalogue of schedules. optimize() calls it with the families of kernels/, tests with their own.
#pragma once

#include "search/catalogue.h"
#include "search/optimize.h"
#include "verify/setup.h"

namespace warploom::search {

struct Problem {
  Catalogue catalogue;
  verify::Setup setup;
  double roofline_us = 0;
};

Result<Outcome> explore(const Problem& problem, const Options& options);

}  // namespace warploom::search
