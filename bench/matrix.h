// SPDX-License-Identifier: BSD-2-Clause
/* The parts of matrix: matrix.c starts the pairs and prints, matrix_cell.c measures. */
#ifndef BENCH_MATRIX_H
#define BENCH_MATRIX_H

#include <stdbool.h>

#include "crew.h"

#define MATRIX_ROOM (4u << 20) /* each buffer: the slots of the messages */
#define MATRIX_SIZE_MAX (1u << 20)
#define MATRIX_SLOTS 64u  /* at most */
#define MATRIX_WINDOW 32u /* requests in flight when a rate is measured */
#define MATRIX_RECVS (2 * MATRIX_WINDOW)

enum matrix_op { MATRIX_SEND, MATRIX_WRITE, MATRIX_READ, MATRIX_OPS };

/* What the target does meanwhile. */
enum matrix_state { MATRIX_POLLS, MATRIX_COMPUTES, MATRIX_SLEEPS, MATRIX_STATES };

enum matrix_figure { MATRIX_LATENCY, MATRIX_RATE, MATRIX_FIGURES };

/* context: a bool, true if the buffers are memory of dat_opendat_mem_alloc. */
crew_body matrix_member;

#endif
