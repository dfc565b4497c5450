// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any text as instance data: it is refused with a message that fits its buffer, or all values are
 * in their ranges and the device is a word of the text.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_values(const struct core_settings *settings)
{
	assert(settings->copy <= CORE_COPY_RING);
	assert(settings->peers <= CORE_PEERS_USER);
	assert(settings->peer_timeout_ms >= 1 && settings->peer_timeout_ms <= 600000);
	assert(settings->setup_timeout_ms >= 1 && settings->setup_timeout_ms <= 600000);
	assert(settings->rnr_timeout_ms <= 600000);
	assert(settings->rmr_bind <= CORE_RMR_REGISTRATION);
	assert(settings->spin_us <= 1000000);
	assert(memchr(settings->socket_dir, '\0', sizeof(settings->socket_dir)));
	assert(!settings->socket_dir[0] || settings->socket_dir[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char device[CORE_DEVICE_MAX], again[CORE_DEVICE_MAX];
	struct core_settings settings;
	const char *why = NULL;
	char *text = malloc(size + 1);
	int rc;

	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	rc = core_settings_parse(text, device, &settings, &why);
	if (rc == 0) {
		check_values(&settings);
		assert(memchr(device, '\0', sizeof(device)) && device[0]);
		assert(strstr(text, device) && !strpbrk(device, " \t\r\n=") && !why);
		assert(core_settings_parse(device, again, &settings, NULL) == 0);
		assert(strcmp(device, again) == 0);
	} else {
		assert(rc == -EINVAL && why && why[0] && strlen(why) < 256);
	}
	free(text);
	return 0;
}
