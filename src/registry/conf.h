// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds and parses dat.conf, the static registry file. This part needs nothing else of the
 * registry, so that tools and fuzzers can link it alone. An entry is one line of eight fields. The
 * OpenFabrics form and the Solaris form differ only in the provider version, whose text is not
 * checked. A malformed line is skipped and reported; parsing continues after it.
 */
#ifndef REGISTRY_CONF_H
#define REGISTRY_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGISTRY_CONF_NAME_MAX 255 /* characters in the name of an adapter */

/* No string is NULL. They are valid until the entry callback returns. */
struct registry_conf_entry {
	unsigned int line; /* from 1 */
	const char *name;
	uint32_t version_major;
	uint32_t version_minor;
	bool is_thread_safe;
	bool is_default;
	const char *library;
	const char *provider_version;
	const char *instance_data;
	const char *platform_data;
};

struct registry_conf_ops {
	/*
	 * Called for each valid user-level entry, of any version. A non-zero result ends the
	 * parse, which returns it.
	 */
	int (*entry)(void *context, const struct registry_conf_entry *entry);
	/* Called for each malformed line; the reason is constant text. May be NULL. */
	void (*skipped)(void *context, unsigned int line, const char *reason);
};

/* Parses the text of a file. Returns 0, -ENOMEM, or the result of the entry callback. */
int registry_conf_parse(const char *text, size_t len, const struct registry_conf_ops *ops,
			void *context);

struct registry_conf_file {
	char *text; /* allocated; NULL if there is no file */
	size_t len;
	/* the file that was read, or cannot be read; valid until the environment changes */
	const char *path;
	bool is_override; /* DAT_OVERRIDE named it */
};

/*
 * Reads the file that DAT_OVERRIDE names, or the first default file that can be read. If there is
 * no default file, this succeeds without text. Returns -errno if the file of DAT_OVERRIDE cannot be
 * read, or if a lack of memory or descriptors prevents reading a file.
 */
int registry_conf_load(struct registry_conf_file *file_out);
/* Is it the error of exhausted memory or descriptors? Then the file may be readable later. */
bool registry_conf_is_shortage(int error);
void registry_conf_unload(struct registry_conf_file *file);

/* Is it a provider library for DAT 1.2 of OpenFabrics or Solaris, by the name of its file? */
bool registry_conf_is_reference(const char *library);

#endif
