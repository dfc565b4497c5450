// SPDX-License-Identifier: BSD-2-Clause
/* Reads the objects of one provider library of a process, by the table of shared/stat.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dat/udat.h>

#include "live.h"

#define CHUNK_BYTES 65536u
#define CELL_MAX 4096u	 /* bytes of a cell */
#define SPAN_MAX 0x4000u /* bytes of an object up to its last member that is read */

#define KIND_OF(kind, name) OPENDAT_STAT_##kind,
static const uint8_t kind_of_member[OPENDAT_STAT_COUNT] = {OPENDAT_STAT_MEMBERS(KIND_OF)};

/* The place of a member in live_object.value: members of a kind are adjacent. */
#define FIRST_OF(kind, first) [OPENDAT_STAT_##kind] = OPENDAT_STAT_##kind##_##first
static const uint16_t first_of_kind[OPENDAT_STAT_KINDS] = {
	FIRST_OF(CELL, TAG), FIRST_OF(IA, NAME),    FIRST_OF(EP, STATE),     FIRST_OF(EVD, ROOM),
	FIRST_OF(SRQ, ROOM), FIRST_OF(LMR, LENGTH), FIRST_OF(SP, QUALIFIER),
};
_Static_assert(OPENDAT_STAT_EP_WAKEUPS - OPENDAT_STAT_EP_STATE < LIVE_VALUES, "room for all");

struct reader {
	const struct live_memory *memory;
	const struct live_library *library;
	struct live_process *process;
	struct opendat_stat table;
	size_t span[OPENDAT_STAT_KINDS]; /* bytes to read of an object */
	uint64_t cells_at;
	uint32_t cells;
	unsigned char object[SPAN_MAX];
};

static int read_at(const struct reader *reader, uint64_t address, void *to, size_t len)
{
	return reader->memory->read(reader->memory->context, address, to, len);
}

/* A number of an object whose bytes were read. */
static uint64_t number_at(const struct reader *reader, const unsigned char *bytes,
			  enum opendat_stat_number number)
{
	const struct opendat_stat_member *member = &reader->table.members[number];
	uint64_t value = 0;

	if (member->size <= sizeof(value)) /* little-endian; the span includes the member */
		memcpy(&value, bytes + member->offset, member->size);
	return value;
}

uint64_t live_value(const struct live_object *object, enum opendat_stat_number number)
{
	return object->value[number - first_of_kind[kind_of_member[number]]];
}

/* OPENDAT_STAT_CELL: nothing of such an object is read, it is only counted. */
static enum opendat_stat_kind kind_of_type(unsigned int type)
{
	switch (type) {
	case DAT_HANDLE_TYPE_IA:
		return OPENDAT_STAT_IA;
	case DAT_HANDLE_TYPE_EP:
		return OPENDAT_STAT_EP;
	case DAT_HANDLE_TYPE_EVD:
		return OPENDAT_STAT_EVD;
	case DAT_HANDLE_TYPE_SRQ:
		return OPENDAT_STAT_SRQ;
	case DAT_HANDLE_TYPE_LMR:
		return OPENDAT_STAT_LMR;
	case DAT_HANDLE_TYPE_PSP:
	case DAT_HANDLE_TYPE_RSP:
		return OPENDAT_STAT_SP;
	default:
		return OPENDAT_STAT_CELL;
	}
}

/* --- the table --- */

/*
 * Reads the table; members that the library does not have get the size 0. The process may store
 * to the table at any time, so the part that is checked here is not read again.
 */
static int read_table(struct reader *reader)
{
	struct opendat_stat *table = &reader->table;
	uint64_t address = live_table(reader->memory, reader->library->base);
	size_t head = offsetof(struct opendat_stat, members);
	size_t len;
	int rc;

	if (!address)
		return -ENOENT; /* a version that has none, or another file with such a name */
	rc = read_at(reader, address, table, head);
	if (rc)
		return rc;
	if (table->magic != OPENDAT_STAT_MAGIC || table->size < head || table->cell_size < 32 ||
	    table->cell_size > CELL_MAX)
		return -EPROTO;
	len = table->size - head;
	if (len > sizeof(table->members))
		len = sizeof(table->members);
	return read_at(reader, address + head, table->members, len);
}

/* Checks the layout, and finds how much of each object is to be read. */
static int check_layout(struct reader *reader)
{
	for (unsigned int i = 0; i < OPENDAT_STAT_COUNT; i++) {
		struct opendat_stat_member *member = &reader->table.members[i];
		size_t *span = &reader->span[kind_of_member[i]];
		size_t end = (size_t)member->offset + member->size;

		if (end > SPAN_MAX)
			return -EPROTO;
		if (!member->size)
			member->offset = 0;
		else if (end > *span)
			*span = end;
	}
	return reader->span[OPENDAT_STAT_CELL] > reader->table.cell_size ? -EPROTO : 0;
}

/* Where the cells are. 0 cells: the library was not used yet. */
static int find_cells(struct reader *reader)
{
	int rc = read_at(reader, (uintptr_t)reader->table.arena, &reader->cells_at,
			 sizeof(reader->cells_at));

	if (!rc)
		rc = read_at(reader, (uintptr_t)reader->table.cells, &reader->cells,
			     sizeof(reader->cells));
	if (rc)
		return rc;
	if (!reader->cells_at)
		reader->cells = 0;
	return reader->cells > LIVE_CELLS ? -EPROTO : 0;
}

/* --- objects --- */

static void *grow(void *array, uint32_t count, size_t size)
{
	/* doubles at each power of two */
	if (count & (count - 1))
		return array;
	array = reallocarray(array, count ? 2 * (size_t)count : 1, size);
	if (!array)
		abort();
	return array;
}

/* Text and addresses are longer than a number. */
static void copy_member(const struct reader *reader, enum opendat_stat_number number, void *to,
			size_t size)
{
	const struct opendat_stat_member *member = &reader->table.members[number];

	memset(to, 0, size);
	memcpy(to, reader->object + member->offset, member->size < size ? member->size : size);
}

static void add_instance(struct reader *reader, const struct live_object *object)
{
	struct live_process *process = reader->process;
	struct live_instance *instance;
	char text[64];

	if (process->instance_count >= LIVE_INSTANCES) {
		process->is_truncated = true;
		return;
	}
	process->instances = grow(process->instances, process->instance_count, sizeof(*instance));
	instance = &process->instances[process->instance_count++];
	*instance = (struct live_instance){.address = object->address, .number = object->number};
	copy_member(reader, OPENDAT_STAT_IA_NAME, text, sizeof(text));
	live_copy_text(instance->name, sizeof(instance->name), text, sizeof(text));
	copy_member(reader, OPENDAT_STAT_IA_DEVICE, text, sizeof(text));
	live_copy_text(instance->device, sizeof(instance->device), text, sizeof(text));
	copy_member(reader, OPENDAT_STAT_IA_ADDRESS, &instance->own, sizeof(instance->own));
	live_copy_text(instance->release, sizeof(instance->release), reader->table.release,
		       sizeof(reader->table.release));
	memcpy(instance->library, reader->library->name, sizeof(instance->library));
}

/* Takes what the object's bytes say. */
static void fill_object(const struct reader *reader, enum opendat_stat_kind kind,
			struct live_object *object)
{
	for (unsigned int i = first_of_kind[kind];
	     i < OPENDAT_STAT_COUNT && kind_of_member[i] == kind; i++)
		object->value[i - first_of_kind[kind]] =
			number_at(reader, reader->object, (enum opendat_stat_number)i);
	if (kind == OPENDAT_STAT_EP)
		copy_member(reader, OPENDAT_STAT_EP_PEER, &object->peer, sizeof(object->peer));
}

/* Is the object still that of the cell, after it was read? */
static bool is_unchanged(struct reader *reader, uint64_t cell_at, const unsigned char *cell)
{
	unsigned char now[CELL_MAX];

	return !read_at(reader, cell_at, now, reader->span[OPENDAT_STAT_CELL]) &&
	       number_at(reader, now, OPENDAT_STAT_CELL_TAG) ==
		       number_at(reader, cell, OPENDAT_STAT_CELL_TAG) &&
	       number_at(reader, now, OPENDAT_STAT_CELL_GENERATION) ==
		       number_at(reader, cell, OPENDAT_STAT_CELL_GENERATION);
}

static void take_cell(struct reader *reader, uint32_t index, const unsigned char *cell)
{
	uint64_t cell_at = reader->cells_at + (uint64_t)index * reader->table.cell_size;
	uint64_t tag = number_at(reader, cell, OPENDAT_STAT_CELL_TAG);
	struct live_process *process = reader->process;
	struct live_object object = {
		.type = (unsigned int)tag - 1,
		.number = index + 1,
		.address = number_at(reader, cell, OPENDAT_STAT_CELL_OBJECT),
		.instance = number_at(reader, cell, OPENDAT_STAT_CELL_INSTANCE),
	};
	enum opendat_stat_kind kind = kind_of_type(object.type);

	if (!tag || tag > LIVE_TYPES) /* free, or being destroyed */
		return;
	if (process->object_count >= LIVE_OBJECTS) {
		process->is_truncated = true;
		return;
	}
	if (kind != OPENDAT_STAT_CELL) {
		if (read_at(reader, object.address, reader->object, reader->span[kind]) ||
		    !is_unchanged(reader, cell_at, cell))
			return;
		fill_object(reader, kind, &object);
	}
	if (kind == OPENDAT_STAT_IA) {
		add_instance(reader, &object);
		return;
	}
	process->objects = grow(process->objects, process->object_count, sizeof(object));
	process->objects[process->object_count++] = object;
}

static int read_cells(struct reader *reader)
{
	uint32_t size = reader->table.cell_size;
	uint32_t chunk = CHUNK_BYTES / size;
	unsigned char *cells = malloc(CHUNK_BYTES);
	int rc = 0;

	if (!cells)
		return -ENOMEM;
	for (uint32_t at = 0; at < reader->cells && !rc; at += chunk) {
		uint32_t count = reader->cells - at < chunk ? reader->cells - at : chunk;

		rc = read_at(reader, reader->cells_at + (uint64_t)at * size, cells,
			     (size_t)count * size);
		for (uint32_t i = 0; i < count && !rc; i++)
			take_cell(reader, at + i, cells + (size_t)i * size);
	}
	free(cells);
	return rc;
}

int live_read(const struct live_memory *memory, const struct live_library *library,
	      struct live_process *process)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	int rc;

	if (!reader)
		return -ENOMEM;
	reader->memory = memory;
	reader->library = library;
	reader->process = process;
	rc = read_table(reader);
	if (!rc)
		rc = check_layout(reader);
	if (!rc)
		rc = find_cells(reader);
	if (!rc)
		rc = read_cells(reader);
	free(reader);
	return rc;
}
