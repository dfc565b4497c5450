// SPDX-License-Identifier: BSD-2-Clause
/*
 * The file behind registered memory: the owner finds it in /proc/thread-self/maps and among its
 * descriptors, the initiator maps it. Only a memory file without a name can be sealed against
 * shrinking, so no path is ever opened.
 */
#include "soft/region.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shared/fd.h"

#define LINE_MAX_READ 256 /* all needed fields are in the first 100 bytes of a line */

/* --- one line --- */

struct cursor {
	const char *text;
	const char *end;
};

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Parses a number of at least one digit and the character behind it. */
static bool take_number(struct cursor *at, unsigned int base, char terminator, uint64_t *value_out)
{
	const char *start = at->text;
	uint64_t value = 0;

	for (; at->text < at->end; at->text++) {
		int digit = digit_value(*at->text);

		if (digit < 0 || (unsigned int)digit >= base)
			break;
		if (value > (UINT64_MAX - (unsigned int)digit) / base)
			return false;
		value = value * base + (unsigned int)digit;
	}
	if (at->text == start)
		return false;
	/* the last field may end the line */
	if (at->text == at->end) {
		*value_out = value;
		return terminator == ' ';
	}
	if (*at->text != terminator)
		return false;
	at->text++;
	*value_out = value;
	return true;
}

/* "rw-s " */
static bool take_permissions(struct cursor *at, struct soft_region_line *line)
{
	const char *text = at->text;

	if (at->end - text < 5 || text[4] != ' ')
		return false;
	if (text[3] != 's' && text[3] != 'p')
		return false;
	line->is_readable = text[0] == 'r';
	line->is_writable = text[1] == 'w';
	line->is_shared = text[3] == 's';
	at->text += 5;
	return true;
}

bool soft_region_parse(const char *text, size_t len, struct soft_region_line *line_out)
{
	struct cursor at = {text, text + len};
	struct soft_region_line line;
	uint64_t major, minor;

	if (!take_number(&at, 16, '-', &line.start) || !take_number(&at, 16, ' ', &line.end) ||
	    !take_permissions(&at, &line) || !take_number(&at, 16, ' ', &line.offset) ||
	    !take_number(&at, 16, ':', &major) || !take_number(&at, 16, ' ', &minor) ||
	    !take_number(&at, 10, ' ', &line.inode))
		return false;
	if (line.start >= line.end || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	/* the last byte's offset must be representable, so that sums of offsets cannot wrap */
	if (line.end - line.start > UINT64_MAX - line.offset)
		return false;
	line.major = (uint32_t)major;
	line.minor = (uint32_t)minor;
	*line_out = line;
	return true;
}

/* --- the search --- */

void soft_region_scan_begin(struct soft_region_scan *scan, uint64_t address, uint64_t length)
{
	memset(scan, 0, sizeof(*scan));
	scan->is_writable = true;
	if (length == 0 || length - 1 > UINT64_MAX - address) {
		scan->is_failed = true;
		return;
	}
	scan->next = address;
	scan->last = address + (length - 1);
}

/* Processes the line that contains the byte at scan->next. False: it does not qualify. */
static bool scan_take(struct soft_region_scan *scan, const struct soft_region_line *line)
{
	uint64_t offset = line->offset + (scan->next - line->start);

	if (!line->is_shared || !line->is_readable || line->inode == 0)
		return false;
	if (!scan->is_started) {
		scan->is_started = true;
		scan->offset = offset;
		scan->first = *line;
	} else if (line->inode != scan->first.inode || line->major != scan->first.major ||
		   line->minor != scan->first.minor || offset != scan->next_offset) {
		return false;
	}
	scan->is_writable = scan->is_writable && line->is_writable;
	scan->next_offset = line->offset + (line->end - line->start);
	return true;
}

bool soft_region_scan_line(struct soft_region_scan *scan, const struct soft_region_line *line)
{
	if (scan->is_done || scan->is_failed)
		return false;
	if (line->end <= scan->next)
		return true;
	/* the lines ascend: a range that was passed is not found any more */
	if (line->start > scan->next || !scan_take(scan, line)) {
		scan->is_failed = true;
		return false;
	}
	scan->is_done = scan->last < line->end;
	scan->next = line->end;
	return !scan->is_done;
}

/* --- the reader --- */

/* Reads lines of any length; the rest of a long line is skipped. */
struct line_reader {
	int fd;
	size_t fill; /* bytes in buffer */
	size_t at;   /* bytes of it that are consumed */
	char buffer[4096];
};

/* 1 and a line (its first LINE_MAX_READ bytes), 0 at the end, -errno. */
static int read_line(struct line_reader *reader, char line[LINE_MAX_READ], size_t *len_out)
{
	size_t len = 0;

	for (;;) {
		if (reader->at == reader->fill) {
			ssize_t n = read(reader->fd, reader->buffer, sizeof(reader->buffer));

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return n < 0 ? -errno : 0;
			reader->fill = (size_t)n;
			reader->at = 0;
		}
		while (reader->at < reader->fill) {
			char c = reader->buffer[reader->at++];

			if (c == '\n') {
				*len_out = len;
				return 1;
			}
			if (len < LINE_MAX_READ)
				line[len++] = c;
		}
	}
}

static int scan_maps(struct soft_region_scan *scan)
{
	struct line_reader reader = {
		.fd = opendat_fd_move(open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC))};
	char text[LINE_MAX_READ];
	size_t len = 0;

	if (reader.fd < 0)
		return -ENOENT;
	while (read_line(&reader, text, &len) == 1) {
		struct soft_region_line line;

		if (soft_region_parse(text, len, &line) && !soft_region_scan_line(scan, &line))
			break;
	}
	close(reader.fd);
	return scan->is_done ? 0 : -ENOENT;
}

/* --- the descriptor --- */

bool soft_region_is_safe(int fd, int wanted)
{
	int seals = fcntl(fd, F_GET_SEALS); /* fails for all but memory files */
	struct statfs fs;

	return seals >= 0 && (seals & wanted) == wanted && fstatfs(fd, &fs) == 0 &&
	       fs.f_type == TMPFS_MAGIC;
}

static bool is_file(int fd, const struct soft_region_line *line)
{
	struct stat st;

	/* called for memory files only, so it cannot block on a file server */
	return soft_region_is_safe(fd, F_SEAL_SHRINK) && fstat(fd, &st) == 0 &&
	       st.st_ino == line->inode && major(st.st_dev) == line->major &&
	       minor(st.st_dev) == line->minor;
}

/* Duplicates descriptor `number` if it is the file, else -1. */
static int copy_if_file(int number, const struct soft_region_line *line)
{
	int fd;

	if (!is_file(number, line))
		return -1;
	fd = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	/* checked again: the consumer may have closed and reused the number meanwhile */
	if (fd >= 0 && !is_file(fd, line)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool is_read_write(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) == O_RDWR;
}

/* The descriptors of this process, read from a directory. */
struct descriptors {
	int dir;
	long at, end; /* in entries */
	alignas(struct dirent) char entries[1024];
};

/*
 * The next one, or -1. Reads the directory itself, because opendir allocates memory, and the C
 * library would reserve 64 MiB for the first allocation of the service thread.
 */
static int next_descriptor(struct descriptors *list)
{
	for (;;) {
		const struct dirent *entry;
		long number;
		char *end;

		if (list->at == list->end) {
			list->at = 0;
			list->end = syscall(SYS_getdents64, list->dir, list->entries,
					    sizeof(list->entries));
			if (list->end <= 0)
				return -1;
		}
		entry = (const void *)(list->entries + list->at);
		list->at += entry->d_reclen;
		number = strtol(entry->d_name, &end, 10);
		if (end != entry->d_name && !*end && number != list->dir)
			return (int)number;
	}
}

/* Finds the consumer's own descriptor of the file, a writable one if there is any. -1: none. */
static int find_descriptor(const struct soft_region_line *line)
{
	struct descriptors list = {
		.dir = opendat_fd_move(
			open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC))};
	int number, fd, found = -1;

	if (list.dir < 0)
		return -1;
	while ((number = next_descriptor(&list)) >= 0) {
		if (number == found)
			continue;
		fd = copy_if_file(number, line);
		if (fd < 0)
			continue;
		if (found >= 0)
			close(found);
		found = fd;
		if (is_read_write(found))
			break;
	}
	close(list.dir);
	return found;
}

/* Opens the file through its mapping, for a consumer that has closed it. The kernel allows that to
 * privileged processes only. */
static int open_mapping(const struct soft_region_line *line)
{
	static const char prefix[] = "/memfd:";
	char path[80];
	char target[sizeof(prefix)];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx",
		 (unsigned long long)line->start, (unsigned long long)line->end);
	/* opening anything else, for example a device, could have side effects */
	if (readlink(path, target, sizeof(target)) < (ssize_t)strlen(prefix) ||
	    memcmp(target, prefix, strlen(prefix)) != 0)
		return -1;
	fd = opendat_fd_move(open(path, O_RDWR | O_CLOEXEC));
	if (fd >= 0 && !is_file(fd, line)) {
		close(fd);
		return -1;
	}
	return fd;
}

int soft_region_read_only(int fd)
{
	char path[40];
	int read_only;

	if (!is_read_write(fd))
		return fd;
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	read_only = opendat_fd_move(open(path, O_RDONLY | O_CLOEXEC));
	close(fd);
	return read_only;
}

int soft_region_find(uint64_t address, uint64_t length, int *fd_out, uint64_t *offset_out)
{
	struct soft_region_scan scan;
	int fd;

	soft_region_scan_begin(&scan, address, length);
	if (scan_maps(&scan))
		return -ENOENT;
	fd = find_descriptor(&scan.first);
	if (fd < 0)
		fd = open_mapping(&scan.first);
	/* memory that is read-only for the consumer must be read-only for its peer */
	if (fd >= 0 && !scan.is_writable)
		fd = soft_region_read_only(fd);
	if (fd < 0)
		return -ENOENT;
	*fd_out = fd;
	*offset_out = scan.offset;
	return 0;
}

/* --- the initiator --- */

/* The length of a mapping that contains these bytes. */
static uint64_t mapping_size(uint64_t start, uint64_t length, uint64_t page)
{
	uint64_t size = start % page + length;

	return size + (page - size % page) % page;
}

int soft_region_map(int fd, uint64_t offset, uint64_t length, bool is_writable,
		    struct soft_region *region_out)
{
	int prot = is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
	struct stat st;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start, size;
	void *map;

	if (!soft_region_is_safe(fd, F_SEAL_SHRINK) || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    st.st_size < 0)
		return -EINVAL;
	/* the file cannot shrink any more */
	if (length == 0 || offset > (uint64_t)st.st_size || length > (uint64_t)st.st_size - offset)
		return -EINVAL;
	start = offset - offset % page;
	size = mapping_size(offset, length, page);
	map = mmap(NULL, size, prot, MAP_SHARED, fd, (off_t)start);
	if (map == MAP_FAILED)
		return errno == EACCES || errno == EPERM ? -EACCES : -ENOMEM;
	if (madvise(map, size, MADV_DONTFORK)) {
		munmap(map, size);
		return -ENOMEM;
	}
	region_out->base = (uint8_t *)map + (offset - start);
	region_out->length = length;
	return 0;
}

void soft_region_unmap(struct soft_region *region)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uintptr_t base = (uintptr_t)region->base;

	if (region->base)
		munmap(region->base - base % page, mapping_size(base, region->length, page));
	memset(region, 0, sizeof(*region));
}
