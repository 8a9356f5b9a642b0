// Pixels between pixels. Private to the room.
//
// Idea. An image x [N,C,size..] is read at places that data say, one number an axis: around each
// place lie 2 pixels along an axis (linear), or 4 (cubic), and what is read is their sum by weights
// that the distances give. A pixel outside the image counts as 0, or as one inside.
//
//   place 2.25 along an axis of 8   →   pixels 2 and 3 with weights 0.75 and 0.25
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include "graph/graph.h"
#include "graph/rules.h"

namespace warploom::graph {
enum class Interpolation : uint8_t { nearest, linear, cubic };
enum class Outside : uint8_t { zeros, border, reflection };

struct Sampling {
  Id x = kAbsent;
  Interpolation interpolation = Interpolation::linear;
  Outside outside = Outside::zeros;
  bool to_centres = false;      // reflections are about the centres of the outermost pixels
  Shape grid = {};              // the places: [images, grid..] of each channel
  std::vector<Id> places = {};  // one an axis of the image, stretching to [images, 1, grid..]
  Id image = kAbsent;           // which image each line of places reads, [images, 1, 1..]; kAbsent:
                                // its own
  bool takes_largest = false;   // the largest of the weighted pixels in place of their sum
};

// [images, C, grid..]
Id sampled(PrimitiveWriter& writer, const Sampling& of);

// x reflected into [low, high] as often as it takes.
Id reflected(PrimitiveWriter& writer, Id x, double low, double high);
}  // namespace warploom::graph
