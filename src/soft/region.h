// SPDX-License-Identifier: BSD-2-Clause
/*
 * Registered memory that is mapped by a peer, so that copies need no system call. The owner finds
 * the file behind a range of its memory; the initiator maps the same part of that file. Only memory
 * files that are sealed against shrinking qualify, and none of huge pages: no copy through such a
 * mapping can fault because of what the owner does to the file. Both sides have the same user.
 */
#ifndef SOFT_REGION_H
#define SOFT_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * May the peer's file be mapped: is it a memory file with these seals, F_SEAL_SHRINK among them? A
 * seal does not forbid the owner to punch a hole. Reading one of a tmpfs allocates a page, but huge
 * pages may be exhausted, and that raises a signal.
 */
bool soft_region_is_safe(int fd, int wanted);

/*
 * Owner: if [address, address+length) of this process is shared, readable memory of one sealed
 * file, without gaps, returns a descriptor of the file (close-on-exec, NOT in the list of
 * soft/fds.h: send it and close(2) it) and the offset of `address` in the file. The descriptor is
 * read-only if the range is not writable here. -ENOENT: a peer cannot map the range. Reads
 * /proc/self/maps: not for the data path.
 */
int soft_region_find(uint64_t address, uint64_t length, int *fd_out, uint64_t *offset_out);

/*
 * Returns a read-only descriptor of the same file in place of `fd`, which it closes if that is not
 * one already; -1 on failure.
 */
int soft_region_read_only(int fd);

/* Initiator: a mapped part of the file of a peer. */
struct soft_region {
	uint8_t *base; /* the byte at `offset` of the file; NULL: there is no mapping */
	uint64_t length;
};

/*
 * Maps length bytes at offset of the peer's file (untrusted numbers; the caller may close fd
 * afterwards). -EINVAL: not a file that soft_region_is_safe, or the range is outside of it;
 * -EACCES: not writable; -ENOMEM.
 */
int soft_region_map(int fd, uint64_t offset, uint64_t length, bool is_writable,
		    struct soft_region *region_out);
void soft_region_unmap(struct soft_region *region);

/* --- the reader of /proc/self/maps, separate for tests --- */

/* One line. */
struct soft_region_line {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t inode;
	uint32_t major;
	uint32_t minor;
	bool is_readable;
	bool is_writable;
	bool is_shared;
};

/* A search for a range; lines are passed in the order of the file. */
struct soft_region_scan {
	uint64_t next; /* first byte that no line has covered yet */
	uint64_t last; /* last byte of the range */
	bool is_started;
	bool is_done;
	bool is_failed;
	bool is_writable;	       /* the whole range */
	uint64_t offset;	       /* of the first byte in the file */
	uint64_t next_offset;	       /* that the next line must have */
	struct soft_region_line first; /* the line that holds the first byte; it names the file */
};

/* Parses one line (without its line feed; any bytes). False: the line is invalid. */
bool soft_region_parse(const char *text, size_t len, struct soft_region_line *line_out);
void soft_region_scan_begin(struct soft_region_scan *scan, uint64_t address, uint64_t length);
/* Processes one line; false: no more lines are needed (is_done: found). */
bool soft_region_scan_line(struct soft_region_scan *scan, const struct soft_region_line *line);

#endif
