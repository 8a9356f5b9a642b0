// Texts: those that the executable carries, and how values are put into them.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace warploom {
// A file that the executable carries as text; cmake/Embed.cmake writes them into it.
struct EmbeddedFile {
  std::string path;  // relative to its folder: "ptx/mbarrier.h"
  std::string text;
};

// The headers under device/: what emitted kernels include and bundles carry along.
const std::vector<EmbeddedFile>& device_headers();
// What is under resources/: the parts of bundles and of reference kernels that are the same each
// time, the archive's tables.
const std::vector<EmbeddedFile>& resources();

inline const std::string& resource(std::string_view path) {
  return std::ranges::find(resources(), path, &EmbeddedFile::path)->text;
}

// A text with places for values, in Mustache's language: {{name}}, {{best.us}}, {{#list}}…{{/list}}
// once for every element (or where a value is true), {{^list}}…{{/list}} where there is none,
// {{>part}} for a text of the record that has places itself. A section that opens at the end of a
// line and closes at the end of another leaves no empty line behind where it is left out.
//
//   rendered("{{#args}}{{name}}, {{/args}}stream", {{"args", {{{"name", "x"}}, {{"name", "y"}}}}})
//   is "x, y, stream"
//
// {{#form}}…{{/form}} is what the form makes of the text within.
using Form = std::function<std::string(const std::string&)>;
using Forms = std::map<std::string, Form>;
std::string rendered(const std::string& text, const nlohmann::json& record,
                     const Forms& forms = {});
// The same as HTML: values are escaped but for {{{this}}}.
std::string rendered_html(const std::string& text, const nlohmann::json& record,
                          const Forms& forms);
std::string escaped(const std::string& text);  // as text, or within quotes

// Microseconds as people read them: "812.0 us", "1.24 ms"; "–" where they are not known (0).
std::string time_text(double us);

// A value as people read it: four digits of a number that is not whole; – for none.
std::string words(const nlohmann::json& value);
}  // namespace warploom
