// Small pieces for writing source text: placeholders, C identifiers, comments.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warploom::export_ {

// `text` with every @NAME@ replaced by its value: fill_in("int @F@();", {{"F", "run"}}) is "int run();".
using Values = std::vector<std::pair<std::string_view, std::string>>;
std::string fill_in(std::string_view text, const Values& values);

// `name` as an identifier of C and C++: other characters become '_', a keyword or a leading digit gets one in front. Different
// from all of `taken`, to which it is added.
std::string identifier(std::string_view name, std::vector<std::string>& taken);

// `text` as lines of `// ` comment no wider than 100 columns.
std::string comment(std::string_view text);

}  // namespace warploom::export_
