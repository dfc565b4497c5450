// SPDX-License-Identifier: BSD-2-Clause
#include "side.h"

#include <inttypes.h>
#include <stdio.h>

#include "common.h"

#define TIMEOUT_MAX_S 4000u

int tool_side_option(int letter, const char *value, struct tool_side *side)
{
	uint64_t seconds;

	switch (letter) {
	case 's':
		side->is_server = true;
		return 0;
	case 'c':
		side->is_server = false;
		return 0;
	case 'a':
		side->adapter = value;
		return 0;
	case 'Q':
		return tool_parse_number(value, &side->qualifier) == 0 ? 0 : -1;
	case '1':
		side->is_once = true;
		return 0;
	case 't':
		if (tool_parse_number(value, &seconds) != 0 || seconds == 0 ||
		    seconds > TIMEOUT_MAX_S)
			return -1;
		side->timeout_ms = (uint32_t)seconds * 1000;
		return 0;
	default:
		return 1;
	}
}

int tool_side_host(const char *host, void *context)
{
	struct tool_side *side = context;

	side->host = host;
	return 0;
}

int tool_side_check(const struct tool_side *side)
{
	if (side->is_server && side->host) {
		tool_complain("%s: a server has no argument", side->host);
		return -1;
	}
	if (!side->is_server && side->qualifier == 0) {
		tool_complain("a client needs --qual, the number that the server prints");
		return -1;
	}
	return 0;
}

int tool_side_listen(const struct tool_side *side, struct session *session, DAT_PSP_HANDLE *psp_out)
{
	DAT_CONN_QUAL qualifier = side->qualifier;
	char address[64];
	int rc = session_listen(session, &qualifier, psp_out);

	if (rc != 0)
		return rc;
	printf("%s: listening adapter=%s address=%s qualifier=%" PRIu64 "\n", tool_name,
	       side->adapter,
	       tool_address_text((struct sockaddr *)&session->address, address, sizeof(address)),
	       qualifier);
	fflush(stdout);
	return 0;
}
