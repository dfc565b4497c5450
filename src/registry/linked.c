// SPDX-License-Identifier: BSD-2-Clause
/* See linked.h. */
#include "linked.h"

#include <string.h>

/* Constant once the program's main function runs. */
static const struct opendat_linked *first;

void opendat_link_provider(struct opendat_linked *linked)
{
	if (linked->extension->magic != REGISTRY_EXTENSION_MAGIC)
		return; /* for the registry of the other generation */
	linked->next = first;
	first = linked;
}

const struct opendat_linked *registry_linked_find(const char *path)
{
	const struct opendat_linked *linked = first;
	const char *slash = strrchr(path, '/');

	while (linked && strcmp(linked->library, slash ? slash + 1 : path) != 0)
		linked = linked->next;
	return linked;
}

const struct opendat_linked *registry_linked_of(const DAT_PROVIDER *provider)
{
	const struct opendat_linked *linked = first;

	while (linked && linked->extension != provider->extension)
		linked = linked->next;
	return linked;
}
