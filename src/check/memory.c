// SPDX-License-Identifier: BSD-2-Clause
/* Regions by key, and images of buffers. */
#include "check/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check/memcheck.h"
#include "check/object.h"

#define NEAR 4096u /* the least size of a page */
#define KNOWN 64u  /* pages */
#define KNOWN_USES 64u
#define WINDOW 64u
#define WINDOWS 64u /* of a segment; a shorter one is read in full */
#define PAGES 1024u /* what one call can read (IOV_MAX) */

/* Can the page be read? The kernel reads a set of signals there before it refuses what to do with it. */
static bool is_page_readable(uintptr_t address)
{
	const uintptr_t set = address & ~(uintptr_t)(sizeof(uint64_t) - 1);

	if (!set) /* no set: the kernel reads nothing */
		return false;
	return syscall(SYS_rt_sigprocmask, -1, set, NULL, sizeof(uint64_t)) == 0 || errno != EFAULT;
}

/* A word at any address. */
struct word {
	uint64_t value;
} __attribute__((packed, may_alias));

/*
 * Volatile: no call of memcpy, which a sanitizer would look into. The program may change the bytes
 * meanwhile, which is what we are here to find.
 */
__attribute__((no_sanitize("address", "thread"))) static void copy_plain(unsigned char *to,
									 const struct iovec *from)
{
	const volatile unsigned char *at = from->iov_base;
	size_t left = from->iov_len;

	for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), to += 8, at += 8)
		((struct word *)to)->value = ((const volatile struct word *)at)->value;
	while (left--)
		*to++ = *at++;
}

/* A piece is in two pages at most. `page` is the one that was asked last. */
static bool is_piece_readable(const struct iovec *piece, uintptr_t *page)
{
	const uintptr_t first = (uintptr_t)piece->iov_base;
	const uintptr_t ends[] = {first, first + piece->iov_len - 1};

	for (unsigned i = 0; i < 2; i++) {
		if (ends[i] / NEAR == *page)
			continue;
		if (!is_page_readable(ends[i]))
			return false;
		*page = ends[i] / NEAR;
	}
	return true;
}

/*
 * Reads pieces of our own memory into one buffer. False: not all of it can be read. What is short, as
 * all of an image, is read by us: that takes a tenth of the time that the kernel takes. Under valgrind
 * the kernel reads all: then memcheck takes the copy for initialised, whatever was copied.
 */
static bool read_pieces(void *buffer, size_t size, const struct iovec *pieces, unsigned count)
{
	const struct iovec local = {buffer, size};
	uintptr_t page = UINTPTR_MAX;
	unsigned char *at = buffer;

	if (size > NEAR || check_memcheck_runs())
		return process_vm_readv(getpid(), &local, 1, pieces, count, 0) == (ssize_t)size;
	for (unsigned i = 0; i < count; at += pieces[i].iov_len, i++) {
		if (!is_piece_readable(&pieces[i], &page))
			return false;
		copy_plain(at, &pieces[i]);
	}
	return true;
}

bool check_read(void *buffer, const void *at, size_t size)
{
	const struct iovec piece = {(void *)(uintptr_t)at, size};

	return read_pieces(buffer, size, &piece, 1);
}

bool check_is_readable(uint64_t address, uint64_t length)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = (length + page - 1) / page;
	unsigned count = pages < PAGES ? (unsigned)pages : PAGES;
	struct iovec pieces[PAGES];
	char bytes[PAGES];

	if (!length)
		return true;
	for (unsigned i = 0; i < count; i++)
		pieces[i] =
			(struct iovec){(void *)(uintptr_t)(address + pages * i / count * page), 1};
	pieces[count - 1].iov_base = (void *)(uintptr_t)(address + length - 1);
	return read_pieces(bytes, count, pieces, count);
}

/* ---- regions ---- */

struct check_object *check_region_locked(struct check_object *ia, DAT_LMR_CONTEXT key)
{
	struct check_object *region = ia->life->ia.keys[key % CHECK_KEYS], *dead = NULL;

	for (; region; region = region->life->lmr.next_key) {
		if (region->life->lmr.key != key)
			continue;
		if (!region->is_dead)
			return region;
		if (!dead)
			dead = region;
	}
	return dead;
}

/* How well an object explains why a peer refused the key: 0, not at all. */
static unsigned fit(const struct check_object *object, const struct check_object *ia,
		    const DAT_RMR_TRIPLET *target)
{
	const struct check_life *life = object->life;
	DAT_RMR_CONTEXT key = target->rmr_context;
	bool is_region = object->type == DAT_HANDLE_TYPE_LMR && life->lmr.remote_key == key;
	bool is_window = object->type == DAT_HANDLE_TYPE_RMR && key &&
			 (life->rmr.keys[0] == key || life->rmr.keys[1] == key);
	bool is_inside = is_region && target->target_address >= life->lmr.address &&
			 target->target_address - life->lmr.address < life->lmr.length;

	if ((!is_region && !is_window) || (object->ia != ia && !is_inside))
		return 0;
	return 1 + (object->ia == ia) + 2 * is_inside + 4 * object->is_dead;
}

struct check_object *check_target_locked(const struct check_object *ia,
					 const DAT_RMR_TRIPLET *target)
{
	struct check_object *object = NULL, *best = NULL;
	unsigned best_fit = 0;

	while ((object = check_next_locked(object)) != NULL)
		if (fit(object, ia, target) > best_fit) {
			best = object;
			best_fit = fit(object, ia, target);
		}
	return best;
}

bool check_segment_is_inside_locked(struct check_object *ia, const DAT_LMR_TRIPLET *segment)
{
	struct check_object *region;

	if (!segment->segment_length)
		return true;
	region = check_region_locked(ia, segment->lmr_context);
	return region && !region->is_dead &&
	       segment->virtual_address >= region->life->lmr.address &&
	       segment->segment_length <= region->life->lmr.length &&
	       segment->virtual_address - region->life->lmr.address <=
		       region->life->lmr.length - segment->segment_length;
}

bool check_segments_overlap(const DAT_LMR_TRIPLET *a, unsigned a_count, const DAT_LMR_TRIPLET *b,
			    unsigned b_count)
{
	for (unsigned i = 0; i < a_count; i++)
		for (unsigned k = 0; k < b_count; k++)
			if (a[i].segment_length && b[k].segment_length &&
			    a[i].virtual_address < b[k].virtual_address + b[k].segment_length &&
			    b[k].virtual_address < a[i].virtual_address + a[i].segment_length)
				return true;
	return false;
}

/* ---- memcheck ---- */

void check_segments_posted(const DAT_LMR_TRIPLET *segments, unsigned count)
{
	for (unsigned i = 0; i < count && check_memcheck_runs(); i++)
		check_memcheck_unknown(segments[i].virtual_address, segments[i].segment_length);
}

void check_segments_taken_locked(struct check_object *ia, const DAT_LMR_TRIPLET *segments,
				 unsigned count, uint64_t length)
{
	for (unsigned i = 0; i < count && check_memcheck_runs(); i++) {
		uint64_t at = segments[i].virtual_address, size = segments[i].segment_length;
		uint64_t part = length < size ? length : size;

		length -= part;
		check_memcheck_known(at, part);
		/* the program may use memory for other things after it has freed the region */
		if (check_segment_is_inside_locked(ia, &segments[i]))
			check_memcheck_unknown(at + part, size - part);
	}
}

bool check_has_key(const DAT_LMR_TRIPLET *segments, unsigned count, uint32_t key)
{
	const uint32_t keys[] = {key, __builtin_bswap32(key)};
	unsigned char bytes[NEAR];

	for (unsigned i = 0; i < count; i++) {
		size_t length = segments[i].segment_length < NEAR
					? (size_t)segments[i].segment_length
					: NEAR;

		if (!check_read(bytes, (void *)(uintptr_t)segments[i].virtual_address, length))
			continue;
		for (unsigned order = 0; order < 2; order++)
			if (memmem(bytes, length, &keys[order], sizeof(key)))
				return true;
	}
	return false;
}

/* ---- images ---- */

static uint64_t sum_bytes(uint64_t sum, const unsigned char *at, size_t length)
{
	uint64_t word;

	for (; length >= sizeof(word); at += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 29;
	}
	while (length--)
		sum = (sum ^ *at++) * UINT64_C(0x100000001b3);
	return sum;
}

/* Adds one segment to the sum. */
static bool sum_segment(uint64_t *sum, const DAT_LMR_TRIPLET *segment)
{
	char *at = (char *)(uintptr_t)segment->virtual_address;
	uint64_t length = segment->segment_length, step;
	unsigned char bytes[WINDOW * WINDOWS];
	struct iovec pieces[WINDOWS];
	unsigned count = 1;

	if (!length)
		return true;
	pieces[0] = (struct iovec){at, (size_t)length};
	if (length > sizeof(bytes)) {
		step = (length - WINDOW) / (WINDOWS - 1);
		for (count = 0; count < WINDOWS; count++)
			pieces[count] = (struct iovec){at + count * step, WINDOW};
		pieces[WINDOWS - 1].iov_base = at + length - WINDOW;
		length = sizeof(bytes);
	}
	if (!read_pieces(bytes, (size_t)length, pieces, count))
		return false;
	*sum = sum_bytes(*sum, bytes, (size_t)length);
	return true;
}

static bool sum_all(uint64_t *sum_out, const DAT_LMR_TRIPLET *segments, unsigned count)
{
	*sum_out = 0;
	for (unsigned i = 0; i < count; i++)
		if (!sum_segment(sum_out, &segments[i]))
			return false;
	return true;
}

uint64_t check_length(const DAT_LMR_TRIPLET *segments, unsigned count)
{
	uint64_t length = 0;

	for (unsigned i = 0; i < count; i++)
		length += segments[i].segment_length;
	return length;
}

/* A short buffer has fewer words. */
static unsigned sample_count(uint64_t length)
{
	uint64_t words = (length + sizeof(uint64_t) - 1) / sizeof(uint64_t);

	return words < CHECK_SAMPLES ? (unsigned)words : CHECK_SAMPLES;
}

static uint64_t sample_offset(uint64_t length, unsigned number)
{
	uint64_t last = length > sizeof(uint64_t) ? length - sizeof(uint64_t) : 0;
	unsigned count = sample_count(length);

	return number == count - 1 ? last : last / (count - 1) * number;
}

/* The word at that offset of the buffer; one at the end of a segment is shorter. */
static struct iovec sample_piece(const DAT_LMR_TRIPLET *segments, uint64_t offset)
{
	uint64_t left;

	while (offset >= segments->segment_length)
		offset -= segments++->segment_length;
	left = segments->segment_length - offset;
	return (struct iovec){(char *)(uintptr_t)segments->virtual_address + offset,
			      left < sizeof(uint64_t) ? (size_t)left : sizeof(uint64_t)};
}

static bool sample_all(uint64_t samples[CHECK_SAMPLES], const DAT_LMR_TRIPLET *segments,
		       uint64_t length)
{
	unsigned char bytes[CHECK_SAMPLES * sizeof(uint64_t)], *at = bytes;
	struct iovec pieces[CHECK_SAMPLES];
	unsigned count = sample_count(length);
	size_t size = 0;

	for (unsigned i = 0; i < count; i++) {
		pieces[i] = sample_piece(segments, sample_offset(length, i));
		size += pieces[i].iov_len;
	}
	if (!count || !read_pieces(bytes, size, pieces, count))
		return false;
	for (unsigned i = 0; i < count; at += pieces[i].iov_len, i++) {
		samples[i] = 0;
		memcpy(&samples[i], at, pieces[i].iov_len);
	}
	return true;
}

void check_image_sum(struct check_image *image_out, const DAT_LMR_TRIPLET *segments, unsigned count)
{
	image_out->length = check_length(segments, count);
	image_out->is_known = sum_all(&image_out->sum, segments, count);
}

void check_image_sample(struct check_image *image_out, const DAT_LMR_TRIPLET *segments,
			unsigned count)
{
	image_out->length = check_length(segments, count);
	image_out->is_known =
		image_out->length && sample_all(image_out->samples, segments, image_out->length);
}

bool check_image_is_same(const struct check_image *image, const DAT_LMR_TRIPLET *segments,
			 unsigned count)
{
	uint64_t sum;

	return !image->is_known || !sum_all(&sum, segments, count) || sum == image->sum;
}

bool check_image_has_changed_behind(const struct check_image *image,
				    const DAT_LMR_TRIPLET *segments, uint64_t length)
{
	uint64_t samples[CHECK_SAMPLES];

	if (!image->is_known || length >= image->length ||
	    !sample_all(samples, segments, image->length))
		return false;
	for (unsigned i = 0; i < sample_count(image->length); i++)
		if (sample_offset(image->length, i) >= length && samples[i] != image->samples[i])
			return true;
	return false;
}
