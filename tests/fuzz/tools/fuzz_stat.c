// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any memory of a process as the input of dat_stat. The first byte says what the rest is:
 *
 *   0  memory at BASE, where a library is said to start
 *   1  the same, behind an ELF header with a note that leads to the table at BASE + TABLE_AT
 *   2  /proc/PID/maps
 *
 * Memory has a head of its own (struct change): a store that the process makes between two reads.
 * Whatever the process holds, the result keeps the limits of live.h, refers only to itself, and
 * is shown without control characters.
 */
#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dat/udat.h>

#include "live.h"

#define BASE 0x10000u
#define NOTE_AT 0x100u
#define TABLE_AT 0x200u

enum {
	INPUT_RAW,
	INPUT_FRAMED,
	INPUT_MAPS,
	INPUTS,
};

/* After `reads` reads, the process stores `value` at BASE + at. */
struct change {
	uint8_t reads;
	uint8_t unused;
	uint16_t at;
	uint32_t value;
};

struct image {
	uint8_t *bytes;
	size_t size;
	struct change change;
	unsigned int reads;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- the process --- */

static int image_read(void *context, uint64_t address, void *to, size_t len)
{
	struct image *image = context;
	uint64_t at = address - BASE;

	if (image->reads++ == image->change.reads &&
	    image->change.at + sizeof(image->change.value) <= image->size)
		memcpy(image->bytes + image->change.at, &image->change.value,
		       sizeof(image->change.value));
	if (at > image->size || len > image->size - at)
		return -EFAULT;
	memcpy(to, image->bytes + at, len);
	return 0;
}

/* What comes before the table: the smallest library that has a note. */
static void make_frame(uint8_t frame[TABLE_AT])
{
	static const char name[8] = OPENDAT_STAT_NOTE_NAME;
	const Elf64_Ehdr file = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
		.e_phoff = sizeof(file),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	const Elf64_Nhdr note = {sizeof(name), sizeof(uint64_t), OPENDAT_STAT_NOTE_TYPE};
	const size_t distance_at = NOTE_AT + sizeof(note) + sizeof(name);
	const uint64_t distance = TABLE_AT - distance_at;
	const Elf64_Phdr header = {
		.p_type = PT_NOTE,
		.p_vaddr = NOTE_AT,
		.p_memsz = distance_at + sizeof(distance) - NOTE_AT,
	};

	memset(frame, 0, TABLE_AT);
	memcpy(frame, &file, sizeof(file));
	memcpy(frame + sizeof(file), &header, sizeof(header));
	memcpy(frame + NOTE_AT, &note, sizeof(note));
	memcpy(frame + NOTE_AT + sizeof(note), name, sizeof(name));
	memcpy(frame + distance_at, &distance, sizeof(distance));
}

static bool image_make(struct image *image, bool has_frame, const uint8_t *data, size_t size)
{
	size_t frame = has_frame ? TABLE_AT : 0;

	*image = (struct image){.bytes = NULL};
	if (size < sizeof(image->change))
		return false;
	memcpy(&image->change, data, sizeof(image->change));
	size -= sizeof(image->change);
	image->size = frame + size;
	image->bytes = malloc(image->size ? image->size : 1);
	if (!image->bytes)
		abort();
	if (has_frame)
		make_frame(image->bytes);
	if (size)
		memcpy(image->bytes + frame, data + sizeof(image->change), size);
	return true;
}

/* --- the result --- */

/* No more entries than the two ends of the queue say, nor than it has room for. */
static void check_queue(const struct live_object *evd)
{
	uint64_t count = live_outstanding(evd, OPENDAT_STAT_EVD_HEAD, OPENDAT_STAT_EVD_TAIL,
					  OPENDAT_STAT_EVD_ROOM);

	assert(count <= live_value(evd, OPENDAT_STAT_EVD_ROOM));
	assert(count <=
	       live_value(evd, OPENDAT_STAT_EVD_TAIL) - live_value(evd, OPENDAT_STAT_EVD_HEAD));
}

static void check_process(const struct live_process *process)
{
	uint32_t counted = 0;

	assert(process->instance_count <= LIVE_INSTANCES && process->object_count <= LIVE_OBJECTS);
	for (uint32_t i = 0; i < process->object_count; i++) {
		const struct live_object *object = &process->objects[i];

		assert(object->type < LIVE_TYPES && object->number > 0);
		assert(object->instance_index < process->instance_count);
		assert(object->instance == process->instances[object->instance_index].address);
		assert(i == 0 || object[-1].address <= object->address);
		if (object->type == DAT_HANDLE_TYPE_EVD)
			check_queue(object);
	}
	for (uint32_t i = 0; i < process->instance_count; i++)
		for (unsigned int type = 0; type < LIVE_TYPES; type++)
			counted += process->instances[i].count[type];
	assert(counted == process->object_count);
}

static void check_line(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert(text[i] == '\n' || (text[i] >= 0x20 && text[i] < 0x7f));
	assert(len > 0 && text[len - 1] == '\n');
}

/* Brackets and quotes match, as each JSON object needs. */
static void check_json(const char *text)
{
	bool is_quoted = false;
	int depth = 0;

	for (; *text; text++) {
		if (is_quoted && *text == '\\')
			text++;
		else if (*text == '"')
			is_quoted = !is_quoted;
		else if (!is_quoted && strchr("{[", *text))
			depth++;
		else if (!is_quoted && strchr("}]", *text))
			depth--;
		assert(depth >= 0 && depth <= 8);
	}
	assert(!is_quoted && depth == 0);
}

static void show(struct live_process *process)
{
	const struct live_list list = {&process, 1};
	char *text[3];
	size_t len[3];
	FILE *out[3];

	for (int i = 0; i < 3; i++)
		if (!(out[i] = open_memstream(&text[i], &len[i])))
			abort();
	live_print_json(out[0], &list);
	live_print_metrics(out[1], &list);
	live_print_list(out[2], &list);
	live_print_text(out[2], process, NULL);
	live_print_text(out[2], process, process);
	for (int i = 0; i < 3; i++) {
		fclose(out[i]);
		check_line(text[i], len[i]);
	}
	check_json(text[0]);
	for (int i = 0; i < 3; i++)
		free(text[i]);
}

static void read_memory(bool has_frame, const uint8_t *data, size_t size)
{
	const struct live_library library = {.base = BASE, .name = "libdat-fuzz.so.1"};
	struct live_process *process;
	struct image image;
	struct live_memory memory = {image_read, &image};

	if (!image_make(&image, has_frame, data, size))
		return;
	process = calloc(1, sizeof(*process));
	if (!process)
		abort();
	/* as if two libraries said the same: each object comes twice */
	for (int i = 0; i < 2; i++)
		live_read(&memory, &library, process);
	live_settle(process, NULL);
	check_process(process);
	show(process);
	live_process_free(process);
	free(image.bytes);
}

static void read_maps(const uint8_t *data, size_t size)
{
	struct live_library found[LIVE_LIBRARIES];
	FILE *maps;
	int count;

	if (!size)
		return;
	maps = fmemopen((void *)(uintptr_t)data, size, "r");
	if (!maps)
		abort();
	count = live_libraries_parse(maps, found);
	fclose(maps);
	assert(count >= 0 && count <= LIVE_LIBRARIES);
	for (int i = 0; i < count; i++) {
		size_t len = strnlen(found[i].name, sizeof(found[i].name));

		assert(len < sizeof(found[i].name) && !strncmp(found[i].name, "libdat-", 7));
		for (size_t at = 0; at < len; at++)
			assert(found[i].name[at] > ' ' && found[i].name[at] < 0x7f);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % INPUTS) {
	case INPUT_MAPS:
		read_maps(data + 1, size - 1);
		break;
	case INPUT_FRAMED:
		read_memory(true, data + 1, size - 1);
		break;
	default:
		read_memory(false, data + 1, size - 1);
	}
	return 0;
}
