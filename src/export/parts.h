// The parts of a bundle. All that is text stands in resources/bundle and is filled in (base/rendered.h) from one record of it all; here
// is what has to be computed beside it: the tensors that `make check` compares, and names.
#pragma once
#include "export/bundle.h"
namespace warploom::export_ {
struct BundleFile {
  std::string path;  // below the bundle's folder
  std::string text;
};

// check/: inputs and expected outputs, or for large problems the seed and samples. Adds to inputs and outputs what check.cpp says of them,
// to an input whether the model itself holds it (`held`) and then where its bytes lie (`stored`), which NAME.py reads, too; and as `given`
// the inputs that it does not. An output may differ by `tolerance`, or by what plain fp32 arithmetic is expected to where that is more.
Result<std::vector<BundleFile>> check_data(nlohmann::json& record, const LaunchList& list, const graph::Graph& graph,
                                           double tolerance, std::uint64_t seed);

// `name` as an identifier of C and C++: other characters become '_', a word that the source has another use for or a leading digit
// gets one in front. Different from all of `taken`, to which it is added.
std::string identifier(std::string_view name, std::vector<std::string>& taken);

// `text` as lines of `// ` comment no wider than 100 columns.
std::string comment(std::string_view text);
}  // namespace warploom::export_
