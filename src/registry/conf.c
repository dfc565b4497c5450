// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads dat.conf. A line is split into fields, which are stored without quotes and comments in a
 * scratch buffer; then each field is checked. The file may contain anything: no sequence of bytes
 * may crash the process or hide a valid line after it.
 */
#include "conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/fd.h"

enum {
	FIELD_NAME,
	FIELD_API_VERSION,
	FIELD_THREAD_SAFETY,
	FIELD_DEFAULT,
	FIELD_LIBRARY,
	FIELD_PROVIDER_VERSION,
	FIELD_INSTANCE,
	FIELD_PLATFORM,
	FIELD_COUNT
};

#define CONF_FILE_MAX (64u << 20) /* bytes; a larger file is refused */

struct line {
	const char *fields[FIELD_COUNT];
	unsigned int count;
	const char *fault; /* why the line is malformed, or NULL */
};

/* Tried in this order when DAT_OVERRIDE is not set (CONF-01, CONF-02). */
static const char *const default_paths[] = {
#ifdef REGISTRY_SYSCONFDIR
	REGISTRY_SYSCONFDIR "/dat.conf",
#endif
	"/etc/dat.conf",
	"/etc/dat/dat.conf",
};

static void line_split(const char *text, const char *end, char *scratch, struct line *line_out);
static const char *line_check(const struct line *line, struct registry_conf_entry *entry_out);
static int file_read(const char *path, struct registry_conf_file *file_out);

int registry_conf_parse(const char *text, size_t len, const struct registry_conf_ops *ops,
			void *context)
{
	unsigned int number = 0;
	const char *end;
	char *scratch;
	int ret = 0;

	if (len == 0) /* an empty file has no text to point into */
		return 0;
	end = text + len;
	/* Together the fields are no longer than the line, plus one NUL each. */
	scratch = malloc(len + FIELD_COUNT);
	if (!scratch)
		return -ENOMEM;
	while (ret == 0 && text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;
		struct registry_conf_entry entry = {.line = ++number};
		const char *fault;
		struct line line;

		line_split(text, line_end, scratch, &line);
		text = newline ? newline + 1 : end;
		if (!line.fault && line.count == 0)
			continue;
		fault = line.fault ? line.fault : line_check(&line, &entry);
		if (fault && *fault != '\0' && ops->skipped)
			ops->skipped(context, number, fault);
		else if (!fault)
			ret = ops->entry(context, &entry);
	}
	free(scratch);
	return ret;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Copies a quoted token from after its opening quote. Returns the text after it, or NULL. */
static const char *quoted_copy(const char *text, const char *end, char **out)
{
	while (text < end && *text != '"') {
		if (*text == '\\' && end - text > 1 && (text[1] == '"' || text[1] == '\\'))
			text++;
		*(*out)++ = *text++;
	}
	return text < end ? text + 1 : NULL;
}

static void line_split(const char *text, const char *end, char *scratch, struct line *line_out)
{
	struct line line = {.count = 0};
	char *out = scratch;

	if (end > text && end[-1] == '\r')
		end--;
	if (memchr(text, '\0', (size_t)(end - text)))
		line.fault = "a NUL byte in the line";
	while (!line.fault) {
		while (text < end && is_blank(*text))
			text++;
		if (text == end || *text == '#')
			break;
		if (line.count == FIELD_COUNT) {
			line.fault = "more than eight fields";
			break;
		}
		line.fields[line.count++] = out;
		if (*text == '"') {
			text = quoted_copy(text + 1, end, &out);
			if (!text)
				line.fault = "a quote is not closed";
			else if (text < end && !is_blank(*text))
				line.fault = "text follows a closing quote";
		} else {
			while (text < end && !is_blank(*text))
				*out++ = *text++;
		}
		*out++ = '\0';
	}
	*line_out = line;
}

/* Reads decimal digits up to the character `stop`. NULL: not a number of 32 bits. */
static const char *number_read(const char *text, char stop, uint32_t *value_out)
{
	uint64_t value = 0;

	if (*text == stop)
		return NULL;
	for (; *text != stop; text++) {
		if (*text < '0' || *text > '9')
			return NULL;
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > UINT32_MAX)
			return NULL;
	}
	*value_out = (uint32_t)value;
	return text;
}

static bool api_version_read(const char *text, struct registry_conf_entry *entry)
{
	if (*text++ != 'u')
		return false;
	text = number_read(text, '.', &entry->version_major);
	return text && number_read(text + 1, '\0', &entry->version_minor);
}

/* Accepts exactly one of two words. */
static bool choice_read(const char *text, const char *yes, const char *no, bool *value_out)
{
	*value_out = strcmp(text, yes) == 0;
	return *value_out || strcmp(text, no) == 0;
}

/*
 * Returns NULL if the entry is valid, and the reason if it is malformed. Returns the empty string
 * for a kernel-level entry, which is skipped without a report (CONF-19).
 */
static const char *line_check(const struct line *line, struct registry_conf_entry *entry_out)
{
	const char *const *fields = line->fields;

	if (line->count > FIELD_API_VERSION && fields[FIELD_API_VERSION][0] == 'k')
		return "";
	if (line->count < FIELD_COUNT)
		return "fewer than eight fields";
	entry_out->name = fields[FIELD_NAME];
	if (entry_out->name[0] == '\0')
		return "the adapter name is empty";
	if (strlen(entry_out->name) > REGISTRY_CONF_NAME_MAX)
		return "the adapter name is longer than 255 characters";
	if (!api_version_read(fields[FIELD_API_VERSION], entry_out))
		return "the API version is not of the form u1.2";
	if (!choice_read(fields[FIELD_THREAD_SAFETY], "threadsafe", "nonthreadsafe",
			 &entry_out->is_thread_safe))
		return "the thread safety is neither threadsafe nor nonthreadsafe";
	if (!choice_read(fields[FIELD_DEFAULT], "default", "nondefault", &entry_out->is_default))
		return "the default flag is neither default nor nondefault";
	/* dlopen takes an empty name for the program itself. */
	entry_out->library = fields[FIELD_LIBRARY];
	if (entry_out->library[0] == '\0')
		return "the library is empty";
	entry_out->provider_version = fields[FIELD_PROVIDER_VERSION];
	if (entry_out->provider_version[0] == '\0')
		return "the provider version is empty";
	entry_out->instance_data = fields[FIELD_INSTANCE];
	entry_out->platform_data = fields[FIELD_PLATFORM];
	return NULL;
}

bool registry_conf_is_shortage(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

int registry_conf_load(struct registry_conf_file *file_out)
{
	/* A set-user-ID program must not load a library that the user chooses (CONF-05). */
	const char *override = secure_getenv("DAT_OVERRIDE");
	size_t i;
	int ret;

	*file_out = (struct registry_conf_file){.path = override, .is_override = override != NULL};
	if (override)
		return file_read(override, file_out);
	for (i = 0; i < sizeof(default_paths) / sizeof(default_paths[0]); i++) {
		ret = file_read(default_paths[i], file_out);
		if (ret == 0 || registry_conf_is_shortage(ret))
			return ret;
	}
	file_out->path = NULL;
	return 0;
}

void registry_conf_unload(struct registry_conf_file *file)
{
	free(file->text);
	*file = (struct registry_conf_file){.text = NULL};
}

bool registry_conf_is_reference(const char *library)
{
	static const char *const names[] = {
		"libdaplcma.so",
		"libdaplscm.so",
		"libdaplucm.so",
		"udapl_tavor.so",
	};
	const char *slash = strrchr(library, '/');
	size_t i;

	library = slash ? slash + 1 : library;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		/* old files name the link for compilers, without the version */
		if (strncmp(library, names[i], len) == 0 &&
		    (library[len] == '\0' || strcmp(library + len, ".1") == 0))
			return true;
	}
	return false;
}

static int text_grow(char **text, size_t *room)
{
	size_t more = *room ? *room * 2 : 4096;
	char *grown;

	if (more > CONF_FILE_MAX)
		return -EFBIG;
	grown = realloc(*text, more);
	if (!grown)
		return -ENOMEM;
	*text = grown;
	*room = more;
	return 0;
}

/*
 * Opens a regular file, or a device such as /dev/null. -ESPIPE for all else: to open or to read a
 * FIFO could block for ever.
 */
static int file_open(const char *path)
{
	int fd = opendat_fd_move(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
	struct stat info;
	int ret;

	if (fd < 0)
		return -errno;
	ret = fstat(fd, &info) ? -errno : -ESPIPE;
	if (ret == -ESPIPE && (S_ISREG(info.st_mode) || S_ISCHR(info.st_mode)))
		return fd;
	close(fd);
	return ret;
}

/* Reads to the end of the file without using its size: it may still grow. */
static int file_read(const char *path, struct registry_conf_file *file_out)
{
	size_t room = 0, len = 0;
	char *text = NULL;
	ssize_t count;
	int fd, ret = 0;

	file_out->path = path;
	fd = file_open(path);
	if (fd < 0)
		return fd;
	for (;;) {
		if (len == room)
			ret = text_grow(&text, &room);
		if (ret)
			goto free_text;
		count = read(fd, text + len, room - len);
		if (count == 0)
			break;
		if (count > 0)
			len += (size_t)count;
		else if (errno != EINTR) {
			ret = -errno;
			goto free_text;
		}
	}
	close(fd);
	file_out->text = text;
	file_out->len = len;
	return 0;
free_text:
	free(text);
	close(fd);
	return ret;
}
