#include "search/policy/weights.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rendered.h"
#include "search/policy/features.h"
#include "search/policy/network.h"

namespace warploom::search {
namespace {
using nlohmann::json;

constexpr const char* kFormat = "warploom-policy";
constexpr int kVersion = 1;
constexpr size_t kMostUnits = 1024;     // of a layer
constexpr size_t kMostFeatures = 4096;  // that weights may name
constexpr const char* kShipped = "policy/weights.json";

Error broken(const std::string& place, std::string found) {
  return {ErrorCode::kWeightsInvalid,
          "these are no weights of this program's policy",
          place,
          fmt::format("\"{}\", version {}, of features that this program has", kFormat, kVersion),
          std::move(found),
          "train new ones with warploom train, or leave the file out"};
}

// The number of digits that a weight needs: training is noisier by far than what they leave out.
double rounded(double value) {
  return std::stod(fmt::format("{:.5g}", value));
}

// Where each of the file's features is in this program.
Result<std::vector<size_t>> places_of(const json& names, const std::string& place) {
  std::vector<size_t> out;
  std::set<size_t> seen;
  for (const json& name : names) {
    const auto text = name.get<std::string>();
    const auto row = std::ranges::find(kFeatureRows, text, &FeatureRow::name);
    if (row == kFeatureRows.end()) return fail(broken(place, "an unknown feature: " + text));
    out.push_back(as_size(row - kFeatureRows.begin()));
    if (!seen.insert(out.back()).second) return fail(broken(place, "a feature twice: " + text));
  }
  return out;
}

Result<Weights> read(const json& in, const std::string& place) {
  if (!in.is_object() || in.value("format", "") != kFormat)
    return fail(broken(place, "another kind of file"));
  if (in.at("version") != kVersion)
    return fail(broken(place, "version " + in.at("version").dump()));
  if (in.at("features").size() > kMostFeatures) return fail(broken(place, "too many features"));
  WARPLOOM_TRY(const auto places, places_of(in.at("features"), place));
  const auto layers = in.at("layers").get<std::array<size_t, 2>>();
  if (std::ranges::any_of(layers, [](size_t n) { return n == 0 || n > kMostUnits; }))
    return fail(broken(place, "layers of " + in.at("layers").dump() + " units"));
  const NetworkShape stored{places.size(), layers[0], layers[1]};
  const auto numbers = in.at("parameters").get<std::vector<double>>();
  if (numbers.size() != stored.parameters())
    return fail(broken(place, fmt::format("{} parameters, where the layers need {}", numbers.size(),
                                          stored.parameters())));
  const auto is_odd = [](double one) { return !std::isfinite(one); };
  if (std::ranges::any_of(numbers, is_odd)) return fail(broken(place, "a parameter not finite"));
  Weights out{Network({kFeatures, layers[0], layers[1]}), in.value("trained", json::object())};
  double* const to = out.network.parameters().data();
  const size_t inputs = places.size();
  for (size_t unit = 0; unit < layers[0]; ++unit)
    for (size_t i = 0; i < inputs; ++i)
      to[unit * kFeatures + places[i]] = numbers[unit * inputs + i];
  std::copy(numbers.begin() + as_int64(inputs * layers[0]), numbers.end(),
            to + kFeatures * layers[0]);
  return out;
}
}  // namespace

std::string weights_text(const Weights& weights) {
  const NetworkShape& shape = weights.network.shape();
  json out;
  out["format"] = kFormat;
  out["version"] = kVersion;
  out["layers"] = {shape.first, shape.second};
  out["trained"] = weights.trained;
  out["features"] = json::array();
  for (const FeatureRow& row : kFeatureRows)
    out["features"].push_back(row.name);
  out["parameters"] = json::array();
  for (const double value : weights.network.parameters())
    out["parameters"].push_back(rounded(value));
  return out.dump() + "\n";
}

Result<Weights> weights_from(const std::string& text, const std::string& place) {
  try {
    return read(json::parse(text), place);
  } catch (const json::exception& error) {
    return fail(broken(place, error.what()));
  }
}

Result<Weights> read_weights(const std::filesystem::path& path) {
  WARPLOOM_TRY(const std::string text, read_file(path));
  return weights_from(text, path.string());
}

Result<Weights> shipped_weights() {
  const auto file = std::ranges::find(resources(), kShipped, &EmbeddedFile::path);
  if (file == resources().end()) return fail(broken(kShipped, "no such file in this program"));
  return weights_from(file->text, kShipped);
}
}  // namespace warploom::search
