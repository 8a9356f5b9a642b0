// Coder: carries an action out (micro coding, as QiMeng-Kernel's MTMC calls it).
//
//   rule    edits the config; its kernels are then made by the config's family, correct by
//           construction
//   llm     a language model writes a source (search/coder/llm.h)
//
//   const Result<Draft> draft = coder->carry_out({.space = &space, .config = parent}, action);
//
// A coder hands back what the action makes, not whether it is right: that the judge says, of any
// source alike. Errors: those of carry_out() in search/action/action.h; a language model's own.
#pragma once
#include <memory>
#include <string>
#include "base/error.h"
#include "kernels/config/kernel_config.h"
#include "search/action/action.h"
#include "search/policy/state.h"

namespace warploom::search {
// What an action made.
struct Draft {
  kernels::KernelConfig config;
  // The text of the kernels where a model wrote it; empty: what the config's family makes.
  std::string source = {};
  std::string transcript = {};  // of the exchange that wrote it, by its name in the archive
};

class Coder {
 public:
  virtual ~Coder() = default;

  virtual std::string name() const = 0;

  // `variant`: of several implementations of the same action, from 0 on. A rule has one.
  virtual Result<Draft> carry_out(const State& state, const Action& action, int variant) = 0;

  // How many implementations of one action differ; a rule's do not.
  virtual int variants() const { return 1; }
};

using CoderPtr = std::shared_ptr<Coder>;

enum class CoderKind : uint8_t { rule };
inline constexpr const char* kCoderNames[] = {"rule"};

Result<CoderPtr> make_coder(CoderKind kind);
}  // namespace warploom::search
