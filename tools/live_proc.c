// SPDX-License-Identifier: BSD-2-Clause
/* What /proc says of processes: which have loaded a provider library, where, and their names. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live.h"

void live_copy_text(char *to, size_t size, const char *from, size_t from_size)
{
	size_t len = strnlen(from, from_size < size - 1 ? from_size : size - 1);

	for (size_t i = 0; i < len; i++)
		to[i] = from[i] >= 0x20 && from[i] < 0x7f ? from[i] : '?';
	to[len] = '\0';
}

void live_process_name(pid_t pid, char *name, size_t size)
{
	char path[64], text[64];
	ssize_t len = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = read(fd, text, sizeof(text));
		close(fd);
	}
	if (len > 0 && text[len - 1] == '\n')
		len--;
	live_copy_text(name, size, text, len > 0 ? (size_t)len : 0);
}

/* Is it a line of /proc/PID/maps for the start of a provider library? */
static bool parse_line(const char *line, struct live_library *library)
{
	static const char prefix[] = "libdat-";
	uint64_t start, offset;
	const char *path = strchr(line, '/');
	const char *name = path ? strrchr(path, '/') + 1 : NULL;

	if (!name || strncmp(name, prefix, sizeof(prefix) - 1) != 0 || !strstr(name, ".so") ||
	    sscanf(line, "%" SCNx64 "-%*x %*4s %" SCNx64, &start, &offset) != 2 || offset)
		return false;
	library->base = start;
	live_copy_text(library->name, sizeof(library->name), name, strcspn(name, " \n"));
	return true;
}

int live_libraries_parse(FILE *maps, struct live_library found[LIVE_LIBRARIES])
{
	bool is_start = true;
	char text[4352]; /* longer than a path */
	int count = 0;

	while (count < LIVE_LIBRARIES && fgets(text, sizeof(text), maps)) {
		bool was_start = is_start;

		is_start = strchr(text, '\n');
		if (was_start && parse_line(text, &found[count]))
			count++;
	}
	return count;
}

static bool has_mappings(pid_t thread)
{
	char path[64], c;
	bool is_read;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	is_read = read(fd, &c, 1) == 1;
	close(fd);
	return is_read;
}

pid_t live_thread(pid_t pid)
{
	struct dirent *entry;
	pid_t thread = pid;
	char path[64];
	DIR *folder;

	if (has_mappings(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	folder = opendir(path);
	if (!folder)
		return pid;
	while (thread == pid && (entry = readdir(folder))) {
		pid_t other = (pid_t)atoi(entry->d_name);

		if (other > 0 && has_mappings(other))
			thread = other;
	}
	closedir(folder);
	return thread;
}

int live_libraries(pid_t thread, struct live_library found[LIVE_LIBRARIES])
{
	char path[64];
	FILE *maps;
	int count;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)thread);
	maps = fopen(path, "re");
	if (!maps)
		return errno == ENOENT ? -ESRCH : -errno;
	count = live_libraries_parse(maps, found);
	fclose(maps);
	return count;
}

static bool is_candidate(pid_t pid)
{
	struct stat folder;
	char path[64];

	if (pid <= 0 || pid == getpid())
		return false;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return !stat(path, &folder) && (!geteuid() || folder.st_uid == geteuid());
}

static int compare_pids(const void *a, const void *b)
{
	const struct live_answer *left = a, *right = b;

	return (left->pid > right->pid) - (left->pid < right->pid);
}

struct live_answer *live_candidates(size_t *count_out)
{
	struct live_answer *answers = NULL;
	DIR *folder = opendir("/proc");
	size_t count = 0, room = 0;
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (!is_candidate(pid))
			continue;
		if (count == room) {
			room = room ? 2 * room : 256;
			answers = reallocarray(answers, room, sizeof(*answers));
			if (!answers)
				abort();
		}
		answers[count++] = (struct live_answer){.pid = pid};
	}
	if (folder)
		closedir(folder);
	if (count)
		qsort(answers, count, sizeof(*answers), compare_pids);
	*count_out = count;
	return answers;
}
