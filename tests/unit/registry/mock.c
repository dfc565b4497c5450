// SPDX-License-Identifier: BSD-2-Clause
/*
 * The mock provider library, see mock.h. Macros select variants of it. MOCK_ARENA: a library of
 * OpenDAT, whose handles are in an arena. MOCK_CONSTRUCTOR: a library without dat_provider_init
 * that registers the name "mock-self" when it is loaded. MOCK_LIBRARY: the name of its file.
 */
#include "mock.h"
#include "mock_slots.h"

#include <stdint.h>
#include <stdlib.h>

#include "shared/opendat.h"

#ifndef MOCK_LIBRARY
#define MOCK_LIBRARY ""
#endif

#define EXPORT __attribute__((visibility("default")))

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);

static void note(char letter)
{
	size_t len;

	pthread_mutex_lock(&mock.lock);
	len = strlen(mock.notes);
	if (len + 1 < sizeof(mock.notes)) {
		mock.notes[len] = letter;
		mock.notes[len + 1] = '\0';
	}
	pthread_mutex_unlock(&mock.lock);
}

#ifdef MOCK_ARENA
#define CELLS 64

/* The memory around the arena looks like its cells: only the bounds distinguish a handle. */
#define AROUND 2

static struct mock_object all_cells[AROUND + CELLS + AROUND] __attribute__((aligned(128)));
static struct mock_object *const cells = all_cells + AROUND;
static size_t cells_used;

EXPORT struct opendat_handle_arena opendat_handle_arena = {.magic = OPENDAT_HANDLE_ARENA_MAGIC,
							   .cell_size = sizeof(struct mock_object)};

static struct mock_object *object_make(void)
{
	struct mock_object *object = &cells[cells_used++ % CELLS];
	const DAT_PROVIDER *decoy = &mock_table;
	size_t i;

	/* Every word of a cell looks like the first one: only the address of a handle differs. */
	for (i = 0; i + sizeof(decoy) <= sizeof(object->rest); i += sizeof(decoy))
		memcpy(object->rest + i, &decoy, sizeof(decoy));
	for (i = 0; i < AROUND; i++) {
		all_cells[i].provider = &mock_table;
		cells[CELLS + i].provider = &mock_table;
	}
	__atomic_store_n(&opendat_handle_arena.size, CELLS * sizeof(*cells), __ATOMIC_RELAXED);
	__atomic_store_n(&opendat_handle_arena.base, (uintptr_t)cells, __ATOMIC_RELEASE);
	object->provider = &mock_table;
	return object;
}

static void object_free(struct mock_object *object)
{
	object->provider = NULL;
}
#else
static struct mock_object *object_make(void)
{
	struct mock_object *object = calloc(1, sizeof(*object));

	object->provider = &mock_table;
	return object;
}

static void object_free(struct mock_object *object)
{
	free(object);
}
#endif

/* --- opening and closing --- */

DAT_RETURN mock_ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			DAT_IA_HANDLE *ia)
{
	DAT_RETURN ret = mock.open_result;

	note('O');
	pthread_mutex_lock(&mock.lock);
	strncpy(mock.opened_name, name, sizeof(mock.opened_name) - 1);
	mock.opened_qlen = qlen;
	mock.opened_evd = *evd;
	mock.provider = &mock_table;
	if (ret != DAT_SUCCESS) {
		/* as a careless provider may */
		*evd = (DAT_EVD_HANDLE)(uintptr_t)0xbad0;
		goto unlock;
	}
	if (*evd == DAT_HANDLE_NULL)
		*evd = object_make();
	mock.ia = *ia = object_make();
unlock:
	pthread_mutex_unlock(&mock.lock);
	return ret;
}

DAT_RETURN mock_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	note(flags == DAT_CLOSE_GRACEFUL_FLAG ? 'c' : 'C');
	if (mock.in_close)
		mock.in_close();
	if (mock.close_result == DAT_SUCCESS)
		object_free(ia);
	return mock.close_result;
}

/* --- the library --- */

#ifdef MOCK_CONSTRUCTOR
static const DAT_PROVIDER_INFO self = {"mock-self", DAT_VERSION_MAJOR, 2, DAT_FALSE};

__attribute__((constructor)) static void library_load(void)
{
	note('L');
	pthread_mutex_lock(&mock.lock);
	mock.provider = &mock_table;
	pthread_mutex_unlock(&mock.lock);
	dat_registry_add_provider(&mock_table, &self);
}

__attribute__((destructor)) static void library_unload(void)
{
	note('U');
	dat_registry_remove_provider(&mock_table, &self);
}
#else
__attribute__((constructor)) static void library_load(void)
{
	note('L');
	pthread_mutex_lock(&mock.lock);
	mock.provider = &mock_table;
	pthread_mutex_unlock(&mock.lock);
}

__attribute__((destructor)) static void library_unload(void)
{
	note('U');
}

EXPORT void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data)
{
	DAT_PROVIDER_INFO second = *info;

	note('I');
	mock.inits++;
	mock.init_info = *info;
	free(mock.instance_data);
	mock.instance_data = strdup(instance_data);
	mock.library = MOCK_LIBRARY;
	if (mock.in_init)
		mock.in_init();
	if (mock.init_is_idle)
		return;
	dat_registry_add_provider(&mock_table, info);
	if (mock.second_name) {
		strncpy(second.ia_name, mock.second_name, sizeof(second.ia_name) - 1);
		dat_registry_add_provider(&mock_table, &second);
	}
}

EXPORT void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	note('F');
	mock.finis++;
	mock.fini_info = *info;
	if (!mock.fini_is_idle)
		dat_registry_remove_provider(&mock_table, info);
}
#endif
