// What a foreign kernel's PTX may hold: instructions, special registers and directives of
// ptx_words.def, no state of its own, calls of functions that are there and do not recur.
//
// The PTX is that which the image was assembled from, as the compiler gave it in the same run; it
// is read as the assembler reads it. Errors: candidate-forbidden with the word, and in `place` the
// line of the source. Within the room only.
#pragma once
#include <string>
#include <string_view>
#include "base/error.h"

namespace warploom::verify {
// ok, or what is not allowed. `programmatic`: the launch declares that it may begin before the
// launch in front of it has ended.
// `source`: what it was compiled of, whose lines are those of several files
// (runtime/text_places.h).
Status check_ptx(std::string_view ptx, const std::string& place, bool programmatic,
                 std::string_view source = {});
}  // namespace warploom::verify
