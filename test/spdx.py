"""Makes an SPDX 2.3 document (JSON) of what a file is linked with: lines of package, version and source package from
standard input, separated by tabs, as dpkg-query writes them; the file's name and version as arguments."""
import hashlib
import json
import os
import re
import sys
from datetime import datetime, timezone


def identifier(name):
    return 'SPDXRef-' + re.sub('[^A-Za-z0-9.-]', '-', name)


def package(name, version, **more):
    return {'SPDXID': identifier(name), 'name': name, 'versionInfo': version, 'downloadLocation': 'NOASSERTION',
            'filesAnalyzed': False, **more}


path, version = sys.argv[1:]
name = os.path.basename(path)
with open(path, 'rb') as file:
    digest = hashlib.sha256(file.read()).hexdigest()
linked = [line.rstrip('\n').split('\t') for line in sys.stdin]
made = int(os.environ.get('SOURCE_DATE_EPOCH') or datetime.now().timestamp())
json.dump({
    'spdxVersion': 'SPDX-2.3',
    'dataLicense': 'CC0-1.0',
    'SPDXID': 'SPDXRef-DOCUMENT',
    'name': name,
    'documentNamespace': f'https://spdx.org/spdxdocs/{name}-{version}-{digest}',
    'creationInfo': {'created': datetime.fromtimestamp(made, timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ'),
                     'creators': ['Tool: gpujoin test/packages']},
    'packages': [package(name, version, checksums=[{'algorithm': 'SHA256', 'checksumValue': digest}])]
                + [package(of, its_version, sourceInfo=f'Debian source package {source}')
                   for of, its_version, source in linked],
    'relationships': [{'spdxElementId': 'SPDXRef-DOCUMENT', 'relationshipType': 'DESCRIBES',
                       'relatedSpdxElement': identifier(name)}]
                     + [{'spdxElementId': identifier(name), 'relationshipType': 'DYNAMIC_LINK',
                         'relatedSpdxElement': identifier(of)} for of, _, _ in linked],
}, sys.stdout, indent=2)
print()
