#include "cli/command_line.h"
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <CLI/Error.hpp>
#include <CLI/Option.hpp>
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <type_traits>
#include <variant>
#include <vector>
#include "base/error.h"
#include "base/nearest.h"
#include "base/rows.h"
#include "cli/command.h"

namespace warploom::cli {
namespace {
constexpr double kLeastSeconds = 1e-3;
constexpr double kMostSeconds = 1e8;  // three years

struct Unit {
  std::string_view name;
  double seconds;
};

constexpr Unit kUnits[] = {{"", 1}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};

// What a value must be, in words, where it is none of a list.
struct Refused {
  std::string expected;
  std::string remedy;
};

using Checked = std::optional<Refused>;

template <class Number> std::optional<Number> number_of(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stopped != end) return std::nullopt;
  return value;
}

template <class Number> Checked check_whole(const Flag& flag, const std::string& value) {
  using Limits = std::numeric_limits<Number>;
  const Number least = flag.least ? static_cast<Number>(*flag.least) : Limits::min();
  const Number most = flag.most ? static_cast<Number>(*flag.most) : Limits::max();
  const auto number = number_of<Number>(value);
  if (number && *number >= least && *number <= most) return std::nullopt;
  return Refused{fmt::format("a whole number from {} to {}", least, most),
                 "give such a number, or leave the flag out"};
}

// One overload a kind of flag (command.h).
Checked check(const Flag&, const bool*, std::string&) {
  return std::nullopt;
}

Checked check(const Flag& flag, const int*, std::string& value) {
  return check_whole<int>(flag, value);
}

Checked check(const Flag& flag, const std::optional<int>*, std::string& value) {
  return check_whole<int>(flag, value);
}

Checked check(const Flag& flag, const uint64_t*, std::string& value) {
  return check_whole<uint64_t>(flag, value);
}

Checked check(const Flag&, const double*, std::string& value) {
  const auto seconds = seconds_of(value);
  if (!seconds || *seconds < kLeastSeconds || *seconds > kMostSeconds)
    return Refused{"a time from 1ms to 100000000s, as 500ms, 60s, 2m or 1.5h",
                   "give a number and ms, s, m or h"};
  value = fmt::format("{}", *seconds);
  return std::nullopt;
}

Checked check(const Flag& flag, const auto*, std::string& value) {
  if (flag.among.empty() || contains(flag.among, value)) return std::nullopt;
  return Refused{"one of " + listed(flag.among),
                 did_you_mean(value, flag.among, "name one of these")};
}

bool is_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-';
}

class CommandLine {
 public:
  CommandLine(std::vector<Command>& commands, Session& session)
      : commands_(commands),
        app_(
            "warploom: from an ONNX operator and a target to the fastest kernel that is proven "
            "right",
            "warploom") {
    app_.require_subcommand(0, 1);
    app_.set_version_flag("--version", std::string(kVersion));
    app_.add_flag("--json", session.json,
                  "print one JSON object on standard output and nothing else there");
    app_.add_flag("--quiet,-q", session.quiet, "no progress");
    app_.allow_extras();
    app_.footer("Example:\n  warploom optimize examples/matmul_small.textproto --budget 20s");
    for (Command& command : commands)
      add(command);
  }

  Result<Asked> read(int argc, char** argv) {
    given_.assign(argv + std::min(argc, 1), argv + argc);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& wanted) {  // --help, --version
      std::ostringstream out;
      app_.exit(wanted, out, out);
      return Asked{nullptr, out.str()};
    } catch (const CLI::ParseError& error) {
      WARPLOOM_CHECK(all_known());
      if (refused_) return fail(*refused_);
      return in_our_words(error);
    }
    WARPLOOM_CHECK(all_known());
    return Asked{named_, ""};
  }

 private:
  void add(Command& command) {
    CLI::App* sub = app_.add_subcommand(command.name, command.help);
    for (Flag& flag : command.flags)
      add(*sub, flag);
    sub->fallthrough();
    sub->allow_extras();
    sub->footer("Example:\n  " + command.example);
    sub->preparse_callback([this, &command](size_t) { named_ = &command; });
  }

  void add(CLI::App& sub, Flag& flag) {
    CLI::Option* option = std::visit(
        [&](auto* into) {
          if constexpr (std::is_same_v<decltype(into), bool*>)
            return sub.add_flag(flag.name, *into, flag.help);
          else
            return sub.add_option(flag.name, *into, flag.help);
        },
        flag.into);
    const bool dashed = is_flag(flag.name);
    if (!dashed && std::holds_alternative<std::string*>(flag.into)) option->required();
    if (dashed && std::holds_alternative<std::vector<std::string>*>(flag.into))
      option->expected(1)->take_all()->allow_extra_args(false);
    if (!flag.among.empty()) option->type_name("{" + listed(flag.among, {}, ",") + "}");
    if (std::holds_alternative<bool*>(flag.into)) return;
    option->transform(
        CLI::Validator([this, &flag](std::string& value) { return checked(flag, value); }, ""));
  }

  // A value as CLI11 shall store it; what it is told where there is something wrong with it.
  std::string checked(const Flag& flag, std::string& value) {
    const std::string found = value;
    const Checked refused =
        std::visit([&](auto* into) { return check(flag, into, value); }, flag.into);
    if (!refused) return "";
    refused_ =
        Error{ErrorCode::kUsage, "a value cannot be taken", flag.name, refused->expected, found,
              refused->remedy};
    return "refused";
  }

  std::vector<std::string> flags_of(const Command* command) const {
    std::vector<std::string> names = {"--json", "--quiet", "--help"};
    if (command == nullptr) names.emplace_back("--version");
    if (command == nullptr) return names;
    for (const Flag& flag : command->flags)
      if (is_flag(flag.name)) names.push_back(flag.name);
    return names;
  }

  std::string help_of(const Command* command) const {
    if (command == nullptr) return "see `warploom --help`";
    return fmt::format("see `warploom {} --help`", command->name);
  }

  // Words that belong nowhere: a command that is none, a flag that is none, one word too many.
  Status all_known() const {
    auto unknown = app_.remaining(true);
    std::vector<std::string> in_order;
    for (const std::string& word : given_) {
      const auto found = std::ranges::find(unknown, word);
      if (found == unknown.end()) continue;
      unknown.erase(found);
      in_order.push_back(word);
    }
    if (named_ == nullptr) return no_command(in_order);
    if (in_order.empty()) return ok();
    const auto flag = std::ranges::find_if(in_order, is_flag);
    const std::string found = listed(in_order, {}, " ");
    const std::string place = "warploom " + named_->name;
    if (flag == in_order.end()) {
      Error error{ErrorCode::kUsage, "there is an argument too many", place, usage_of(*named_)};
      error.found = found;
      error.remedy = help_of(named_);
      return fail(error);
    }
    const auto known = flags_of(named_);
    const std::string word = flag->substr(0, flag->find('='));
    Error error{ErrorCode::kUsage, "there is no flag of this name", place};
    error.expected = "one of " + listed(known);
    error.found = found;
    error.remedy = did_you_mean(word, known, help_of(named_));
    return fail(error);
  }

  Status no_command(const std::vector<std::string>& unknown) const {
    std::vector<std::string> names;
    for (const Command& command : commands_)
      names.push_back(command.name);
    const auto word = std::ranges::find_if_not(unknown, is_flag);
    const std::string expected = "one of " + listed(names);
    const std::string help = help_of(nullptr);
    if (word != unknown.end()) {
      Error error{ErrorCode::kUsage, "there is no command of this name", "command line", expected};
      error.found = *word;
      error.remedy = did_you_mean(*word, names, help);
      return fail(error);
    }
    std::string found = "none";
    std::string remedy = help;
    if (!unknown.empty()) {
      found = listed(unknown, {}, " ");
      remedy = did_you_mean(unknown[0], flags_of(nullptr), help);
    }
    return fail(
        {ErrorCode::kUsage, "no command is named", "command line", expected, found, remedy});
  }

  // "FILE and flags", "BUNDLE INPUTS and flags".
  static std::string usage_of(const Command& command) {
    std::string text;
    for (const Flag& flag : command.flags)
      if (!is_flag(flag.name)) text += flag.name + " ";
    return text.empty() ? "flags alone" : text + "and flags";
  }

  // What CLI11 found: an argument or a flag's value that is missing; a value where none belongs.
  tl::unexpected<Error> in_our_words(const CLI::ParseError& error) const {
    const std::string said = error.what();
    const std::string name = said.substr(0, said.find_first_of(": "));
    Error ours{ErrorCode::kUsage, "the command line cannot be read", name, "", said,
               help_of(named_)};
    std::string example;
    if (named_ != nullptr) {
      for (const Flag& flag : named_->flags)
        if (flag.name == name) ours.expected = flag.help;
      example = fmt::format(", as `{}`", named_->example);
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
      ours.message = "an argument is missing";
      ours.found = "nothing";
      ours.remedy = "name it" + example;
    } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
      ours.message = "a flag lacks its value, or has one too many";
      ours.found = said.ends_with("missing") ? "no value" : said;
      ours.remedy = fmt::format("write {} and one value", name);
    }
    return fail(ours);
  }

  std::vector<Command>& commands_;
  CLI::App app_;
  std::vector<std::string> given_;  // the words after the program's name
  const Command* named_ = nullptr;  // the command that was named
  std::optional<Error> refused_;    // what a value's check found
};
}  // namespace

std::optional<double> seconds_of(const std::string& text) {
  const size_t unit = std::min(text.find_first_not_of("0123456789.eE+-"), text.size());
  const auto number = number_of<double>(text.substr(0, unit));
  if (!number) return std::nullopt;
  const std::string suffix = text.substr(unit);
  const auto* const row = std::ranges::find(kUnits, suffix, &Unit::name);
  if (row == std::end(kUnits)) return std::nullopt;
  return *number * row->seconds;
}

Result<Asked> read_command_line(int argc, char** argv, std::vector<Command>& commands,
                                Session& session) {
  const auto asked = CommandLine(commands, session).read(argc, argv);
  for (int i = 1; i < argc && !asked; ++i)  // a line that cannot be read is answered as asked
    session.json |= std::string_view(argv[i]) == "--json";
  return asked;
}
}  // namespace warploom::cli
