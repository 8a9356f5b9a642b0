# Writes OUT: warploom::FUNCTION(), one (path, text) pair for each of FILES below ROOT, of the file
# of that path below MADE where there is one. Text goes in as raw literals cut at line ends, since
# compilers may limit one literal to 64 KiB.
string(CONCAT text "#include \"base/rendered.h\"\nnamespace warploom {\n"
  "const std::vector<EmbeddedFile>& ${FUNCTION}() {\n"
  "  static const std::vector<EmbeddedFile> files = {\n")
foreach(file ${FILES})
  set(from ${ROOT})
  if(EXISTS ${MADE}/${file})
    set(from ${MADE})
  endif()
  file(READ ${from}/${file} body)
  string(LENGTH "${body}" length)
  set(literal "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${body}" ${at} 12000 part)
    string(APPEND literal "R\"~~~(${part})~~~\" ")
    math(EXPR at "${at} + 12000")
  endwhile()
  string(APPEND text "    {\"${file}\", std::string() + ${literal}},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n}  // namespace warploom\n")
file(WRITE ${OUT} "${text}")
