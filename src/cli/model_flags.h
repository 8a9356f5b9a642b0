// The flags of `warploom optimize` that name a language model, and the model that they mean.
//
//   ModelFlags flags;
//   add_model_flags(command.flags, flags);              // --coder, --llm-url, …
//   WARPLOOM_CHECK(use_model(flags, options));          // options.model, options.replay_model
//
// Errors: flags-contradict (--llm-… without --coder llm, an endpoint that is not whole), usage,
// model-key, no-curl.
#pragma once
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"
#include "cli/command.h"
#include "search/options.h"

namespace warploom::cli {
struct ModelFlags {
  std::string coder = "rule";
  std::string url;
  std::string name;
  std::string key_file;
  std::optional<int> budget;  // tokens
  std::optional<int> answer;  // tokens
  std::optional<int> rate;    // requests a minute
  std::string money;
  std::string price;
  double seconds = 600;
  bool replay = false;
};

// They set `into`, which must outlive the command.
void add_model_flags(std::vector<Flag>& flags, ModelFlags& into);
Status use_model(const ModelFlags& flags, search::Options& options);
}  // namespace warploom::cli
