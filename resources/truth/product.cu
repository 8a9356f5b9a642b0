// c[b] = a[b] * b[b] in FP64, and what magnitudes make of it: |a||b| + |a| E_b + E_a |b|. Tiles of
// 64 x 64 results in registers, 16 depths of both operands in shared memory.
enum { kTile = 64, kDepth = 16 };

FUNCTION Word at(const Places& places, Word i) {
  return places.table ? reinterpret_cast<const Word*>(places.table)[i] : i * places.step;
}

// Lines and depths of an operand, zeros where it has none. Neighbouring threads read neighbours.
FUNCTION void load_tile(double (*tile)[kTile + 1], double (*errors)[kTile + 1],
                        const ProductSide& side, Word batch, Word first, Word count, Word k0,
                        Word end, int t) {
  const Word from = at(side.batch, batch);
  const bool along = end - k0 > 1 && at(side.depths, k0 + 1) - at(side.depths, k0) == 1;
  UNROLL
  for (int part = 0; part < kTile * kDepth / 256; ++part) {
    const int e = part * 256 + t;
    const int line = along ? e / kDepth : e % kTile;
    const int depth = along ? e % kDepth : e / kTile;
    const bool inside = first + line < count && k0 + depth < end;
    double value = 0;
    double error = 0;
    if (inside) {
      const Word place = from + at(side.lines, first + line) + at(side.depths, k0 + depth);
      value = load(side.of.type, side.of.data, place);
      error = magnitude_at(side.of, place);
    }
    tile[depth][line] = value;
    if (errors) errors[depth][line] = error;
  }
}

struct Sums {
  double value[4][4];
  double magnitude[4][4];
};

// What the depths of a tile add to the sums of a thread: every 16th row from ty and column from tx.
FUNCTION void add_products(const double (*a)[kTile + 1], const double (*b)[kTile + 1], int t,
                           Sums& sums) {
  const int tx = t % 16;
  const int ty = t / 16;
  for (int k = 0; k < kDepth; ++k) {
    UNROLL
    for (int i = 0; i < 4; ++i) {
      UNROLL
      for (int j = 0; j < 4; ++j) {
        const double x = a[k][16 * i + ty];
        const double y = b[k][16 * j + tx];
        sums.value[i][j] += x * y;
        sums.magnitude[i][j] += fabs(x) * fabs(y);
      }
    }
  }
}

// What errors of the operands add to the magnitudes.
FUNCTION void add_errors(const double (*a)[kTile + 1], const double (*a_errors)[kTile + 1],
                         const double (*b)[kTile + 1], const double (*b_errors)[kTile + 1], int t,
                         Sums& sums) {
  const int tx = t % 16;
  const int ty = t / 16;
  for (int k = 0; k < kDepth; ++k) {
    UNROLL
    for (int i = 0; i < 4; ++i) {
      UNROLL
      for (int j = 0; j < 4; ++j) {
        const int row = 16 * i + ty;
        const int column = 16 * j + tx;
        sums.magnitude[i][j] += fabs(a[k][row]) * b_errors[k][column];
        sums.magnitude[i][j] += a_errors[k][row] * fabs(b[k][column]);
      }
    }
  }
}

struct TilePlace {
  Word batch;
  Word row;
  Word column;
  Word part;
};

FUNCTION void put_sums(const ProductTask& task, const TilePlace& tile, int t, const Sums& sums) {
  const Word c = at(task.c, tile.batch) + tile.part * task.part_step;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const Word row = tile.row + 16 * i + t / 16;
      const Word column = tile.column + 16 * j + t % 16;
      if (row >= task.m || column >= task.n) continue;
      put(task.to, c + row * task.n + column, sums.value[i][j], sums.magnitude[i][j]);
    }
}

// Tiles of one column are neighbours in time, and share what they read of b.
FUNCTION TilePlace tile_place(const ProductTask& task, Word number) {
  const Word rows = (task.m + kTile - 1) / kTile;
  const Word columns = (task.n + kTile - 1) / kTile;
  TilePlace place;
  place.row = number % rows * kTile;
  place.column = number / rows % columns * kTile;
  place.part = number / (rows * columns) % task.parts;
  place.batch = number / (rows * columns) / task.parts;
  return place;
}

FUNCTION Word tiles_of(const ProductTask& task) {
  return (task.m + kTile - 1) / kTile * ((task.n + kTile - 1) / kTile) * task.parts * task.batch;
}

KERNEL(truth_product, ProductTask) {
  SHARED double a[kDepth][kTile + 1];
  SHARED double b[kDepth][kTile + 1];
  const Word each = (task.k + task.parts - 1) / task.parts;
  for (Word number = block(); number < tiles_of(task); number += blocks()) {
    const TilePlace tile = tile_place(task, number);
    const Word begin = tile.part * each;
    const Word end = begin + each < task.k ? begin + each : task.k;
    Sums sums[OWN] = {};
    for (Word k0 = begin; k0 < end; k0 += kDepth) {
      EACH_THREAD(t) {
        load_tile(a, nullptr, task.a, tile.batch, tile.row, task.m, k0, end, t);
        load_tile(b, nullptr, task.b, tile.batch, tile.column, task.n, k0, end, t);
      }
      meet();
      EACH_THREAD(t) add_products(a, b, t, sums[own(t)]);
      meet();
    }
    EACH_THREAD(t) put_sums(task, tile, t, sums[own(t)]);
  }
}

// The same where an operand has errors.
KERNEL(truth_product_errors, ProductTask) {
  SHARED double a[kDepth][kTile + 1];
  SHARED double b[kDepth][kTile + 1];
  SHARED double a_errors[kDepth][kTile + 1];
  SHARED double b_errors[kDepth][kTile + 1];
  const Word each = (task.k + task.parts - 1) / task.parts;
  for (Word number = block(); number < tiles_of(task); number += blocks()) {
    const TilePlace tile = tile_place(task, number);
    const Word begin = tile.part * each;
    const Word end = begin + each < task.k ? begin + each : task.k;
    Sums sums[OWN] = {};
    for (Word k0 = begin; k0 < end; k0 += kDepth) {
      EACH_THREAD(t) {
        load_tile(a, a_errors, task.a, tile.batch, tile.row, task.m, k0, end, t);
        load_tile(b, b_errors, task.b, tile.batch, tile.column, task.n, k0, end, t);
      }
      meet();
      EACH_THREAD(t) {
        add_products(a, b, t, sums[own(t)]);
        add_errors(a, a_errors, b, b_errors, t, sums[own(t)]);
      }
      meet();
    }
    EACH_THREAD(t) put_sums(task, tile, t, sums[own(t)]);
  }
}

// Of whole numbers, which wrap.
KERNEL(truth_product_whole, ProductTask) {
  const Word results = task.m * task.n;
  for (Word i = first_item(); i < task.batch * results; i += next_item()) {
    const Word batch = i / results;
    const Word row = at(task.a.batch, batch) + at(task.a.lines, i % results / task.n);
    const Word column = at(task.b.batch, batch) + at(task.b.lines, i % task.n);
    Word sum = 0;
    for (Word k = 0; k < task.k; ++k) {
      const Word x = whole_at(task.a.of, row + at(task.a.depths, k));
      const Word y = whole_at(task.b.of, column + at(task.b.depths, k));
      sum = sum_of(product_of(x, y), sum);
    }
    put_whole(task.to, at(task.c, batch) + i % results, wrapped_integer(task.type, sum));
  }
}
