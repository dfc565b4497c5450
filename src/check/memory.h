// SPDX-License-Identifier: BSD-2-Clause
/* What segments name: regions, and the bytes of a buffer at two moments. */
#ifndef CHECK_MEMORY_H
#define CHECK_MEMORY_H

#include <dat/udat.h>

#include <stdbool.h>
#include <stdint.h>

struct check_object;

#define CHECK_SAMPLES 16u

/*
 * A buffer as it was at one moment: a sum over up to 4 KiB of each segment, spread over its length, or
 * words at equal distances over the whole buffer. The kernel reads it for us, so that memory which is
 * not mapped any more is no harm.
 */
struct check_image {
	bool is_known; /* else nothing is compared: a region is not ours, or cannot be read */
	uint64_t length;
	uint64_t sum;
	uint64_t samples[CHECK_SAMPLES];
};

/* Copies memory of this process that may not be mapped. False: not all of it can be read. */
bool check_read(void *buffer, const void *at, size_t size);
/* Can the range be read? At most 1,024 pages at equal distances are tried. */
bool check_is_readable(uint64_t address, uint64_t length);

/* The region with that key in that instance: a live one first, else a dead one. NULL: none. Locked. */
struct check_object *check_region_locked(struct check_object *ia, DAT_LMR_CONTEXT key);
/*
 * The region or window that gives, or gave, peers the key of this target: one of this instance, or one
 * of this process that has the range, too. NULL: none. Locked.
 */
struct check_object *check_target_locked(const struct check_object *ia,
					 const DAT_RMR_TRIPLET *target);
/* Is the segment inside a live region of the instance? Locked. */
bool check_segment_is_inside_locked(struct check_object *ia, const DAT_LMR_TRIPLET *segment);

/* Do the first 4 KiB of one of the segments have that key in them, in either order of bytes? */
bool check_has_key(const DAT_LMR_TRIPLET *segments, unsigned count, uint32_t key);

/* The bytes of all segments. */
uint64_t check_length(const DAT_LMR_TRIPLET *segments, unsigned count);

/* Take the image of segments, which the caller has found inside their regions. */
void check_image_sum(struct check_image *image_out, const DAT_LMR_TRIPLET *segments,
		     unsigned count);
void check_image_sample(struct check_image *image_out, const DAT_LMR_TRIPLET *segments,
			unsigned count);
/* Is the buffer the same as the sum? */
bool check_image_is_same(const struct check_image *image, const DAT_LMR_TRIPLET *segments,
			 unsigned count);
/* Has one of the samples changed that are behind the first `length` bytes? */
bool check_image_has_changed_behind(const struct check_image *image,
				    const DAT_LMR_TRIPLET *segments, uint64_t length);

/*
 * Let memcheck report that the program reads them: all bytes, when a Receive or an RDMA Read into them
 * is posted; those behind the first `length`, when its completion is taken. A request that has failed
 * has a length of 0.
 */
void check_segments_posted(const DAT_LMR_TRIPLET *segments, unsigned count);
void check_segments_taken_locked(struct check_object *ia, const DAT_LMR_TRIPLET *segments,
				 unsigned count, uint64_t length);

bool check_segments_overlap(const DAT_LMR_TRIPLET *a, unsigned a_count, const DAT_LMR_TRIPLET *b,
			    unsigned b_count);

#endif
