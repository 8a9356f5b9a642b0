// Weights: a trained network as a file, and how it came to be.
//
//   {"format": "warploom-policy", "version": 1, "features": ["flops", …], "layers": [48, 32],
//    "parameters": [0.0123, …], "trained": {…}}
//
// Features are found by name: what this program sees and the weights do not know counts for
// nothing, so that a kind of action more leaves old weights usable. Errors: file-missing,
// file-unreadable; weights-invalid for a text that is no such JSON, another version, a feature that
// this program does not have, or numbers that are too few, too many or not finite.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include "base/error.h"
#include "search/policy/network.h"

namespace warploom::search {
struct Weights {
  Network network;
  nlohmann::json trained;  // from what, how long, and how good it was
};

std::string weights_text(const Weights& weights);
// `place` names the file in errors.
Result<Weights> weights_from(const std::string& text, const std::string& place);

Result<Weights> read_weights(const std::filesystem::path& path);
// Those that the program carries.
Result<Weights> shipped_weights();
}  // namespace warploom::search
