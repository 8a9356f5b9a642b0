#include "verify/evaluator_pool.h"
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include "base/error.h"
#include "verify/channel.h"
#include "verify/memory_group.h"

namespace warploom::verify {
Status EvaluatorProcess::start(const std::filesystem::path& program, bool ahead) {
  group.reset();
  group = MemoryGroup::make(memory_for_candidates());
  WARPLOOM_CHECK(peer.start(program.string(), kEvaluateCommand, -1, entering(group.get())));
  if (ahead) peer.channel->send({{"ahead", true}});
  return ok();
}

EvaluatorPool::EvaluatorPool(int count, const std::filesystem::path& program) {
  for (int i = 0; i < count; ++i) {
    auto made = std::make_unique<EvaluatorProcess>();
    if (made->start(program, true)) waiting_.push_back(std::move(made));
  }
}

std::unique_ptr<EvaluatorProcess> EvaluatorPool::take() {
  if (waiting_.empty()) return nullptr;
  auto taken = std::move(waiting_.back());
  waiting_.pop_back();
  return taken;
}
}  // namespace warploom::verify
