"""Files of other formats to text: one module per family, chosen by name and content.

Text files are read in this process. The others are parsed in a process of their own
(`readers.apart`), as whoever wrote such a file has a say in what its parser does. What they need
besides the standard library is the extra `files`, imported there alone.
"""
