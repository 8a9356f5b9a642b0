#include "search/coder/coder.h"
#include <memory>
#include "base/error.h"
#include "search/coder/rule.h"

namespace warploom::search {
Result<CoderPtr> make_coder(CoderKind /*kind*/) {
  return std::make_shared<RuleCoder>();
}
}  // namespace warploom::search
